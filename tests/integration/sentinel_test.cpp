// SPDX-License-Identifier: Apache-2.0
// Following the master that sentinels name.
#include "support/certificates.h"
#include "support/integration.h"
#include "support/paths.h"
#include "support/sentinel_group.h"
#include "support/sockets.h"

using namespace rlock::test;

namespace {

bool one_line(const std::string& text) { return text.starts_with("rlock: ") && count(text, "\n") == 1; }

std::int64_t in_line(const RedisServer& server) { return as_int(server.command({"ZCARD", "rlock:queue:{k}"})); }

}  // namespace

TEST_CASE("sentinel: run, nest, wait and look, by the sentinels' URL")
{
  SentinelGroup group({.replicas = 1});
  const std::string url = group.url();
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"run", "-S", url, "-k", "k"});
    return run_rlock(words);
  };
  CHECK(run({"--", "sh", "-c", "exit 7"}).code == 7);
  CHECK(run({"--", "sh", "-c", "echo $RLOCK_SERVER"}).out == url + "\n");
  const Finished nested = run({"--", "sh", "-c", std::string(RLOCK_BINARY) + " run -n -k k -- echo nested"});
  CHECK(nested.out == "nested\n");
  CHECK(nested.err == "");

  Process holder = start_rlock({"run", "-S", url, "-k", "k", "--label", "first", "--", "sleep", "60"});
  wait_until([&] { return as_int(group.servers[0].command({"EXISTS", "k"})) == 1; }, "the lock is taken");
  expect_end(run_rlock({"status", "-S", url, "-k", "k"}), 0, {out_has("first")});
  Process waiter = start_rlock({"run", "-S", url, "-k", "k", "--", "echo", "mine"});
  wait_until([&] { return in_line(group.servers[0]) == 1; }, "one waits");
  CHECK(run({"-n", "--", "true"}).code == 75);
  holder.signal(SIGTERM);
  expect_end(waiter, success, {out_is("mine\n")});
}

TEST_CASE("sentinel: one of them is enough, and none of them is 69")
{
  SentinelGroup group({.replicas = 0});
  const std::vector<std::string> words{"run", "-S", group.url(), "-k", "k", "--", "true"};
  group.sentinels[0].kill_hard();
  group.sentinels[1].stop_signal();
  expect_end(run_rlock(words), 0, {err_is("")});
  group.sentinels[2].kill_hard();
  group.sentinels[1].kill_hard();
  const Finished none = run_rlock(words);
  CHECK(none.code == 69);
  CHECK(one_line(none.err));
  CHECK(has(none.err, "no sentinel of " + group.url() + " answers"));
}

TEST_CASE("sentinel: what is wrong is told in one line")
{
  SentinelGroup group({.replicas = 1, .sentinels = 1, .sentinel_password = "geheim"});
  const auto run = [&](const std::string& url) {
    const Finished end = run_rlock({"run", "-S", url, "-k", "k", "--server-timeout", "2s", "--", "true"});
    CAPTURE(end.err);
    CHECK((end.code == 0 ? end.err.empty() : one_line(end.err)));
    CHECK_FALSE(has(end.err, "geheim"));
    CHECK_FALSE(has(end.err, "falsch"));
    return end;
  };
  const std::string where = "redis+sentinel://" + group.sentinels[0].where();
  const std::string with_password = "?sentinel_password=geheim";

  SUBCASE("its password")
  {
    CHECK(run(group.url()).code == 77);
    CHECK(has(run(group.url()).err, "RLOCK_SENTINEL_PASSWORD"));
    CHECK(run(group.url() + "?sentinel_password=falsch").code == 77);
    CHECK(run(group.url() + with_password).code == 0);
    CHECK(
        run_rlock({"run", "-S", group.url(), "-k", "k", "--", "true"}, {.env = {{"RLOCK_SENTINEL_PASSWORD", "geheim"}}})
            .code == 0);
    expect_end(run_rlock({"run", "-S", group.url() + with_password, "-k", "k", "--", "sh", "-c",
                          "env; tr '\\0' ' ' < /proc/$PPID/cmdline"}),
               0, {out_lacks("geheim")});
  }
  SUBCASE("the rights of its user")
  {
    const auto set = [&](std::vector<std::string> rules) {
      rules.insert(rules.begin(), {"ACL", "SETUSER", "watcher", "reset", "on", ">geheim"});
      return show(group.sentinels[0].command(rules));
    };
    const std::string as_watcher = group.url() + "?sentinel_username=watcher&sentinel_password=geheim";
    REQUIRE(set({"-@all", "+sentinel|get-master-addr-by-name", "+sentinel|master", "+subscribe", "&+switch-master"}) ==
            "\"OK\"");
    CHECK(run(as_watcher).code == 0);
    REQUIRE(set({"-@all", "+sentinel|get-master-addr-by-name"}) == "\"OK\"");
    CHECK(run(as_watcher).code == 0);
    REQUIRE(set({"-@all"}) == "\"OK\"");
    CHECK(run(as_watcher).code == 77);
  }
  SUBCASE("the name") { expect_end(run(where + "/other" + with_password), 78, {err_has("know no master other")}); }
  SUBCASE("no sentinel at all")
  {
    expect_end(run("redis+sentinel://127.0.0.1:" + std::to_string(group.servers[0].port()) + "/mymaster"), 78,
               {err_has("is no sentinel")});
  }
  SUBCASE("a replica in the place of the master")
  {
    SentinelProcess misled({.master_port = group.servers[1].port(), .quorum = 1, .down_after = 60s, .password = ""});
    expect_end(run("redis+sentinel://" + misled.where() + "/mymaster"), 69,
               {err_has("says that it is a replica and no master")});
  }
  SUBCASE("a master that is gone")
  {
    group.servers[0].kill_hard();
    SentinelProcess late({.master_port = group.servers[0].port(), .quorum = 1, .down_after = 60s, .password = ""});
    expect_end(run("redis+sentinel://" + late.where() + "/mymaster"), 69,
               {err_has("the master mymaster is not there: cannot reach redis://127.0.0.1:")});
  }
}

AUTHORITY_CASE("sentinel: TLS with the sentinels, with the master, with both")
{
  const Certificate certificate = authority.sign("IP:127.0.0.1");
  const RedisServer secured({.tcp = true, .tls = certificate});
  const RedisServer plain({.tcp = true});
  const std::string tls_port = std::to_string(free_port());
  const auto watching = [&](const RedisServer& server, std::vector<std::string> lines) {
    return SentinelProcess::Options{
        .master_port = server.port(), .quorum = 9, .down_after = 1h, .password = "", .lines = std::move(lines)};
  };
  const auto run = [&](const std::string& url) {
    const Finished end = run_rlock({"run", "-S", url, "--cacert", authority.file(), "-k", "k", "--", "true"});
    CAPTURE(end.err);
    CHECK((end.code == 0 || one_line(end.err)));
    return end.code;
  };
  const std::vector<std::string> tls{"tls-port " + tls_port, "tls-cert-file " + certificate.file,
                                     "tls-key-file " + certificate.key, "tls-ca-cert-file " + authority.file(),
                                     "tls-auth-clients no"};
  {
    const SentinelProcess sentinel(watching(secured, tls));
    CHECK(run("rediss+sentinel://127.0.0.1:" + tls_port + "/mymaster") == 0);
    CHECK(run("rediss+sentinel://" + sentinel.where() + "/mymaster?sentinel_tls=no") == 0);
    CHECK(run("rediss+sentinel://" + sentinel.where() + "/mymaster") == 69);
  }
  const SentinelProcess sentinel(watching(plain, tls));
  CHECK(run("redis+sentinel://127.0.0.1:" + tls_port + "/mymaster?sentinel_tls=yes") == 0);
  CHECK(run_rlock({"run", "-S", "redis+sentinel://127.0.0.1:" + tls_port + "/mymaster?sentinel_tls=yes", "-k", "k",
                   "--", "true"})
            .code == 69);
}
