// SPDX-License-Identifier: Apache-2.0
#include "net/errors.h"

#include <doctest/doctest.h>

#include <string>

using namespace rlock;

namespace {

constexpr const char* where = "redis://db1:6379";

}  // namespace

TEST_CASE("errors: what each reply means")
{
  struct Row {
    Fault expect;
    const char* text;
  };
  const Row rows[] = {
      {Fault::unfit, "LOADING Redis is loading the dataset in memory"},
      {Fault::unfit, "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."},
      {Fault::unfit, "OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:1."},
      {Fault::unfit, "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist"},
      {Fault::unfit, "READONLY You can't write against a read only replica. script: 1f, on @user_script:1."},
      {Fault::unfit,
       "ERR Error running script (call to f_1f): @user_script:1: @user_script: 1: -READONLY You "
       "can't write against a read only replica. "},
      {Fault::unfit, "@user_script: 1: -OOM command not allowed when used memory > 'maxmemory'."},
      {Fault::unfit, "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."},
      {Fault::unfit, "NOREPLICAS Not enough good replicas to write."},
      {Fault::unfit, "CLUSTERDOWN The cluster is down"},
      {Fault::unfit, "TRYAGAIN Multiple keys request during rehashing of slot"},
      {Fault::unfit, "UNBLOCKED force unblock from blocking operation"},
      {Fault::unfit, "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0"},
      {Fault::unfit, "ERR unknown command 'evalsha'"},
      {Fault::unfit, "ERR max number of clients reached"},
      {Fault::unfit, "ERR max number of clients + cluster connections reached"},
      {Fault::refused, "NOAUTH Authentication required."},
      {Fault::refused, "WRONGPASS invalid username-password pair or user is disabled."},
      {Fault::refused, "NOPERM this user has no permissions to run the 'evalsha' command"},
      {Fault::refused, "ERR The user executing the script can't run this command or subcommand script: 1f"},
      {Fault::refused, "ERR ACL failure in script: User ann has no permissions to run the 'get' command"},
      {Fault::refused,
       "ERR Error running script (call to f_1f): @user_script:1: @user_script: 1: The user "
       "executing the script can't access at least one of the keys mentioned"},
      {Fault::refused, "DENIED Redis is running in protected mode because protected mode is enabled"},
      {Fault::config, "WRONGTYPE Operation against a key holding the wrong kind of value"},
      {Fault::config, "ERR DB index is out of range"},
      {Fault::config, "MOVED 3999 127.0.0.1:6381"},
      {Fault::internal, "ERR value is not an integer or out of range"},
      {Fault::internal, "ERR Error running script (call to f_1f): @user_script:1: attempt to compare nil"},
      {Fault::internal, "READONLYISH no such code"},
      {Fault::internal, "ERR no such key as 'a -OOM b'"},
      {Fault::internal, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Error error = error_from_reply(row.text, where);
    CHECK(error.fault == row.expect);
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

TEST_CASE("errors: an unknown script, wrapped or not")
{
  CHECK(is_unknown_script("NOSCRIPT No matching script. Please use EVAL."));
  CHECK(is_unknown_script("ERR Error running script (call to f_1f): @user_script:1: -NOSCRIPT No matching"));
  CHECK_FALSE(is_unknown_script("NOSCRIPTS"));
  CHECK_FALSE(is_unknown_script("ERR no such thing as -NOSCRIPT here"));
}
