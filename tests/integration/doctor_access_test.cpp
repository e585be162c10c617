// SPDX-License-Identifier: Apache-2.0
// `rlock doctor` about clients without a password, and about a cluster that cannot answer.
#include "support/diagnosis.h"
#include "support/integration.h"

using namespace rlock::test;

namespace {

std::string with_user(const RedisServer& server)
{
  return "redis://app:" + std::string(test_password) + "@127.0.0.1:" + std::to_string(server.port());
}

Finished doctor(const std::string& url) { return run_rlock({"doctor", "-S", url, "--json"}); }

// The line of this check.
std::string line_of(const Finished& told, const std::string& check)
{
  const auto at = told.out.find("\"check\":\"" + check + "\"");
  REQUIRE(at != std::string::npos);
  const auto begin = told.out.rfind('\n', at) + 1;
  return told.out.substr(begin, told.out.find('\n', at) - begin);
}

}  // namespace

TEST_CASE("doctor: reports a server without a password that other hosts can reach, from any host")
{
  // The second address is reserved for documentation, so the server listens only on the first.
  const RedisServer server(
      {.args = {"--bind", "127.0.0.1", "-192.0.2.1", "--protected-mode", "no"}, .tcp = true, .alone = true});
  server.command({"ACL", "SETUSER", "app", "on", ">" + std::string(test_password), "~*", "&*", "+@all"});
  for (const std::string& url : {server.tcp_url(), server.direct_url(), with_user(server)}) {
    CAPTURE(url);
    const std::string access = line_of(doctor(url), "access");
    expect_has(access, {"\"warn\"", "other hosts reach it"});
  }
  server.command({"ACL", "SETUSER", "default", ">" + std::string(test_password), "resetpass", ">other"});
  CHECK(has(line_of(doctor(with_user(server)), "access"), "\"ok\""));
}

TEST_CASE("doctor: a cluster without slots is told what to do")
{
  const RedisServer server({.tcp = true, .alone = true, .cluster = true});
  const std::string node = "127.0.0.1:" + std::to_string(server.port());
  for (const std::string& url : {"redis+cluster://" + node, "redis://" + node, server.direct_url()}) {
    CAPTURE(url);
    const Finished told = doctor(url);
    CHECK(told.code != 0);
    const std::string cluster = line_of(told, "cluster");
    expect_has(cluster, {"\"fail\"", "no slot is assigned"});
    for (const std::string& line : {cluster, line_of(told, "lock")}) {
      expect_has(line, {"\"fail\"", "redis-cli --cluster fix " + (url == server.direct_url() ? "HOST:PORT" : node)});
    }
  }
  server.command({"CLUSTER", "ADDSLOTSRANGE", "0", "16382"});
  const Finished nearly = doctor("redis+cluster://" + node);
  CHECK(has(line_of(nearly, "cluster"), "1 of 16384 slots is assigned to no node"));
  CHECK(has(line_of(nearly, "cluster"), "redis-cli --cluster fix " + node));
}

TEST_CASE("doctor: a user without rights is told which rules to ask for, and a wrong password what to give")
{
  const RedisServer server({.tcp = true, .alone = true});
  server.command({"ACL", "SETUSER", "app", "on", ">" + std::string(test_password), "+ping"});
  const Finished bare = doctor(with_user(server));
  CHECK(bare.code == 77);
  CHECK(has(line_of(bare, "reach"), "NOPERM"));
  CHECK(has(line_of(bare, "reach"), "\"advice\":\"rlock acl -k GLOB --user app prints the rules"));
  CHECK_FALSE(has(bare.out, "name and password"));

  server.command({"ACL", "SETUSER", "app", "~*", "&*", "+@all", "-evalsha", "-eval"});
  CHECK(has(line_of(doctor(with_user(server)), "lock"), "\"advice\":\"rlock acl -k GLOB --user app prints the rules"));

  server.command({"ACL", "SETUSER", "app", "resetpass", ">other"});
  const Finished stranger = doctor(with_user(server));
  CHECK(stranger.code == 77);
  CHECK(has(line_of(stranger, "reach"), "give this user's name and password"));
}
