// SPDX-License-Identifier: Apache-2.0
// A server that is no place for locks, although it answers: it is told what it is, and no job starts.
#include "base/duration.h"
#include "support/deaf_port.h"
#include "support/integration.h"
#include "support/refusal.h"
#include "support/scripted_server.h"
#include "support/sentinel_group.h"
#include "support/sockets.h"

using namespace rlock::test;

TEST_CASE("wrong server: a replica is refused by each way to it, although it accepts writes")
{
  const RedisServer master({.args = {"--repl-diskless-sync-delay", "0"}, .tcp = true});
  const RedisServer replica(
      {.args = {"--replicaof", "127.0.0.1", std::to_string(master.port()), "--replica-read-only", "no"}, .tcp = true});
  wait_until([&] { return as_int(master.command({"WAIT", "1", "10"})) == 1; }, "the replica follows", 30s);
  REQUIRE(show(replica.command({"SET", "own", "1"})) == "\"OK\"");
  REQUIRE(show(replica.command({"ACL", "SETUSER", "shop", "on", ">hush", "~*", "&*", "+@all"})) == "\"OK\"");
  const std::string host = "127.0.0.1:" + std::to_string(replica.port());
  for (const std::string& url : {"redis://" + host, "redis://" + host + "/3", "redis://shop:hush@" + host,
                                 "unix://" + replica.socket_path().string()}) {
    CAPTURE(url);
    check_refused(run_job_at(url), 69, " is a replica");
    CHECK(run_rlock({"acquire", "-S", url, "-k", "k", "--lease", "1m"}).code == 69);
    CHECK(run_rlock({"list", "-S", url}).code == 69);
    CHECK_FALSE(is_held(replica));  // what was granted before the role was known is taken back
  }
  CHECK(run_job_at("redis://127.0.0.1:" + std::to_string(master.port())).out == "ran\n");
}

TEST_CASE("wrong server: the URL of one server names a sentinel")
{
  const RedisServer master({.tcp = true});
  const SentinelProcess sentinel({.master_port = master.port(), .quorum = 1, .down_after = 60s, .password = ""});
  const std::string url = "redis://" + sentinel.where();
  const std::string use = "is a sentinel (use -S redis+sentinel://" + sentinel.where() + "/NAME";
  check_refused(run_job_at(url), 78, use);
  CHECK(has(run_rlock({"list", "-S", url}).err, use));
  CHECK(has(run_rlock({"doctor", "-S", url}).out, use));
}

TEST_CASE("wrong server: a command that scripts need is switched off")
{
  for (const std::string command : {"TIME", "PTTL", "HSET", "PUBLISH"}) {
    CAPTURE(command);
    const RedisServer server({.args = {"--rename-command", command, ""}});
    const Finished end = run_job_at(server.url());
    check_refused(end, 69, ": " + command);
    CHECK(has(end.err, "switched off"));
    CHECK_FALSE(is_held(server));
  }
}

TEST_CASE("wrong server: an address that sentinels or a cluster announced is not blamed on the URL, after all the time")
{
  const DeafPort deaf;
  const SentinelProcess sentinel({.master_port = deaf.port(), .quorum = 1, .down_after = 60s, .password = ""});
  const Finished end = run_job_at("redis+sentinel://" + sentinel.where() + "/mymaster", {"--server-timeout", "1s"});
  check_refused(end, 69, "(the sentinels announced this address");
  const auto told = end.err.find("no answer within ");
  REQUIRE_MESSAGE(told != std::string::npos, end.err);
  const std::string time = end.err.substr(told + 17, end.err.find(' ', told + 17) - told - 17);
  CHECK_MESSAGE(parse_duration(time).value_or(0ms) > 800ms, end.err);  // not the last attempt alone
}

TEST_CASE("wrong server: where none listens it is asked whether it runs, for each kind of server")
{
  const std::string at = "127.0.0.1:" + std::to_string(free_port());
  for (const std::string& url :
       {"redis://" + at, "postgresql://u@" + at + "/d", "mysql://u@" + at + "/d", "mongodb://" + at + "/d",
        "etcd://" + at, "zookeeper://" + at, "postgresql://u@/d?host=" + make_temp_dir("none").string()}) {
    CAPTURE(url);
    expect_end(run_job_at(url, {"--server-timeout", "2s"}), 69, {err_has(" running? -S names another server)")});
  }
}

TEST_CASE("wrong server: a ZooKeeper member without a leader is not taken for one with TLS")
{
  const ScriptedServer member([](const Peer& peer) { peer.hear_some(); }, Endpoint::Kind::tcp);
  const Finished end =
      run_job_at("zookeeper://127.0.0.1:" + std::to_string(member.endpoint().port), {"--server-timeout", "2s"});
  check_refused(end, 69, "(do enough members run to elect a leader? if it speaks TLS: zookeeper+tls://)");
}
