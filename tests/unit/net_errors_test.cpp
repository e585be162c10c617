// SPDX-License-Identifier: Apache-2.0
#include "redis/codec.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

constexpr const char* where = "redis://db1:6379";

}  // namespace

TEST_CASE("errors: what each reply means")
{
  struct Row {
    ErrorCode expect;
    const char* text;
  };
  const Row rows[] = {
      {ErrorCode::server_not_ready, "LOADING Redis is loading the dataset in memory"},
      {ErrorCode::server_not_ready,
       "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."},
      {ErrorCode::server_not_ready,
       "OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:1."},
      {ErrorCode::server_not_ready,
       "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist"},
      {ErrorCode::server_not_ready,
       "READONLY You can't write against a read only replica. script: 1f, on @user_script:1."},
      {ErrorCode::server_not_ready,
       "ERR Error running script (call to f_1f): @user_script:1: @user_script: 1: -READONLY You "
       "can't write against a read only replica. "},
      {ErrorCode::server_not_ready, "@user_script: 1: -OOM command not allowed when used memory > 'maxmemory'."},
      {ErrorCode::server_not_ready, "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."},
      {ErrorCode::server_not_ready, "NOREPLICAS Not enough good replicas to write."},
      {ErrorCode::server_not_ready, "CLUSTERDOWN The cluster is down"},
      {ErrorCode::server_not_ready, "TRYAGAIN Multiple keys request during rehashing of slot"},
      {ErrorCode::server_not_ready, "UNBLOCKED force unblock from blocking operation"},
      {ErrorCode::server_not_ready,
       "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0"},
      {ErrorCode::server_not_ready, "ERR unknown command 'evalsha'"},
      {ErrorCode::unreachable, "ERR Unknown Redis command called from script script: 1f, on @user_script:1."},
      {ErrorCode::unreachable,
       "ERR Error running script (call to f_1f): @user_script:1: @user_script: 1: Unknown Redis command called from "
       "Lua "
       "script"},
      {ErrorCode::server_not_ready, "ERR max number of clients reached"},
      {ErrorCode::server_not_ready, "ERR max number of clients + cluster connections reached"},
      {ErrorCode::refused, "NOAUTH Authentication required."},
      {ErrorCode::refused, "WRONGPASS invalid username-password pair or user is disabled."},
      {ErrorCode::refused, "NOPERM this user has no permissions to run the 'evalsha' command"},
      {ErrorCode::refused, "ERR The user executing the script can't run this command or subcommand script: 1f"},
      {ErrorCode::refused, "ERR ACL failure in script: User ann has no permissions to run the 'get' command"},
      {ErrorCode::refused,
       "ERR Error running script (call to f_1f): @user_script:1: @user_script: 1: The user "
       "executing the script can't access at least one of the keys mentioned"},
      {ErrorCode::refused, "DENIED Redis is running in protected mode because protected mode is enabled"},
      {ErrorCode::config, "WRONGTYPE Operation against a key holding the wrong kind of value"},
      {ErrorCode::config, "ERR DB index is out of range"},
      {ErrorCode::config, "MOVED 3999 127.0.0.1:6381"},
      {ErrorCode::unreachable, "ERR value is not an integer or out of range"},
      {ErrorCode::unreachable, "ERR Error running script (call to f_1f): @user_script:1: attempt to compare nil"},
      {ErrorCode::unreachable, "READONLYISH no such code"},
      {ErrorCode::unreachable, "ERR no such key as 'a -OOM b'"},
      {ErrorCode::unreachable, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Error error = error_from_reply(row.text, where);
    CHECK(error.code == row.expect);
    CHECK(error.text.starts_with("redis://db1:6379 says: "));
  }
}

TEST_CASE("errors: the text is one short line with a fix")
{
  CHECK(error_from_reply("OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @u:1.", where).text ==
        "redis://db1:6379 says: OOM command not allowed when used memory > 'maxmemory' "
        "(its memory is full; raise maxmemory)");
  CHECK(error_from_reply("ERR Error running script (call to f_1f): @user_script:1: @user_script: 1: -READONLY "
                         "You can't write against a read only replica. ",
                         where)
            .text ==
        "redis://db1:6379 says: READONLY You can't write against a read only replica "
        "(it is a replica; name the master)");
  CHECK(error_from_reply("ERR unknown command 'EVALSHA', with args beginning with: 'sha' '1' 'owner-id'", where).text ==
        "redis://db1:6379 says: ERR unknown command 'EVALSHA' "
        "(a command that rlock needs is renamed or switched off there)");
  CHECK(error_from_reply("ERR ACL failure in script: User shop has no permissions to run the 'hmget' command script: "
                         "1f, on @user_script:83.",
                         where)
            .text ==
        "redis://db1:6379 says: ERR ACL failure in script: User shop has no permissions to run the "
        "'hmget' command (rlock acl prints the rules that a user needs)");
  CHECK(error_from_reply("ERR \x1b[2Jboo\x07", where).text == "redis://db1:6379 says: ERR \\x1b[2Jboo\\x07");
  CHECK(error_from_reply("ERR " + std::string(1000, 'x'), where).text.size() < 220);
}

TEST_CASE("errors: a command that is switched off is said to be, also inside a script, whose line is told")
{
  for (const char* text : {"ERR Unknown Redis command called from script script: 1f, on @user_script:12.",
                           "ERR Error running script (call to f_1f): @user_script:12: @user_script: 12: Unknown Redis "
                           "command called from Lua script"}) {
    const Error error = error_from_reply(text, where);
    CHECK_MESSAGE(has(error.text, "switched off there"), error.text);
    CHECK(error.script_line == 12);
  }
}

TEST_CASE("errors: an unknown script, wrapped or not")
{
  CHECK(is_unknown_script("NOSCRIPT No matching script. Please use EVAL."));
  CHECK(is_unknown_script("ERR Error running script (call to f_1f): @user_script:1: -NOSCRIPT No matching"));
  CHECK_FALSE(is_unknown_script("NOSCRIPTS"));
  CHECK_FALSE(is_unknown_script("ERR no such thing as -NOSCRIPT here"));
}
