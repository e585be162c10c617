// SPDX-License-Identifier: Apache-2.0
// `rlock doctor` on servers with one flaw each, and on one without.
#include "support/acl_fixture.h"
#include "support/diagnosis.h"
#include "support/integration.h"
#include "support/paths.h"
#include "support/scripted_server.h"

#include <atomic>
#include <cstdlib>

using namespace rlock::test;

namespace {

// A server with a wrong clock.
class SkewedServer {
 public:
  explicit SkewedServer(const std::string& environment) : m_before(value("RLOCK_TEST_SERVER"))
  {
    const auto program = make_temp_dir("skew") / "server";
    std::ofstream(program) << "#!/bin/sh\nexec env LD_PRELOAD=" << RLOCK_PRELOAD_SKEWED_CLOCK << " " << environment
                           << " " << (m_before.empty() ? "redis-server" : m_before) << " \"$@\"\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    ::setenv("RLOCK_TEST_SERVER", program.c_str(), 1);
    server.emplace(fit());
  }
  ~SkewedServer()
  {
    m_before.empty() ? ::unsetenv("RLOCK_TEST_SERVER") : ::setenv("RLOCK_TEST_SERVER", m_before.c_str(), 1);
  }
  SkewedServer(const SkewedServer&) = delete;
  SkewedServer& operator=(const SkewedServer&) = delete;

  std::optional<RedisServer> server;

 private:
  static std::string value(const char* name)
  {
    const char* text = std::getenv(name);
    return text != nullptr ? text : "";
  }
  std::string m_before;
};

// Keeps a server busy for some 20 ms at a time.
class Burden {
 public:
  explicit Burden(const RedisServer& server)
  {
    for (int i = 0; i < 3; ++i) {
      m_threads.emplace_back([this, url = server.url()] { weigh_down(url); });
    }
  }
  ~Burden()
  {
    m_over = true;
    for (std::thread& thread : m_threads) {
      thread.join();
    }
  }
  Burden(const Burden&) = delete;
  Burden& operator=(const Burden&) = delete;

 private:
  void weigh_down(const std::string& url) const
  {
    auto connection = Connection::open(*parse_url(url), real_clock, within(plenty));
    const std::vector<std::string_view> loop{"EVAL", "for _ = 1, 3000000 do end", "0"};
    while (!m_over && connection && connection->call(loop, within(plenty))) {
    }
  }

  std::atomic<bool> m_over = false;
  std::vector<std::thread> m_threads;
};

}  // namespace

TEST_CASE("doctor: a good server is all well, and nothing is left on it")
{
  // Keyspace notifications do no harm, nor does an eviction policy that never acts.
  const RedisServer server(fit({"--notify-keyspace-events", "KEA", "--maxmemory-policy", "allkeys-lru"}));
  const Diagnosis told = examined(server.url());
  CHECK(told.code == 0);
  CHECK(complaints(told) == "");
  CHECK(told.findings.size() == 23);
  CHECK(as_int(server.command({"DBSIZE"})) == 0);

  expect_end(run_rlock({"doctor", "-S", server.url()}), 0,
             {out_begins("ok       reach         it answers at unix:///"), out_lacks("→"), err_is("")});
}

TEST_CASE("doctor: no server there, and access refused")
{
  const Diagnosis silent = examined("unix:///nowhere/redis.sock");
  CHECK(silent.code == 69);
  CHECK(complaints(silent) == "reach=fail");
  const RedisServer server({.args = {"--appendonly", "yes"}, .password = "secret"});
  const Diagnosis refused = examined(server.url());
  CHECK(refused.code == 77);
  CHECK(complaints(refused) == "reach=fail");
  CHECK(run_rlock({"doctor", "--ttl", "soon"}).code == 64);
}

TEST_CASE("doctor: a policy that throws locks away")
{
  for (const std::string policy : {"volatile-lru", "volatile-ttl", "allkeys-lru"}) {
    const RedisServer server(fit({"--maxmemory", "100mb", "--maxmemory-policy", policy}));
    const Diagnosis told = examined(server.url());
    CHECK(told.code == 1);
    CHECK_MESSAGE(complaints(told) == "eviction=fail", policy);
    CHECK(told.found("eviction").starts_with(policy));
  }
}

TEST_CASE("doctor: keys have been thrown away")
{
  const RedisServer server(fit({"--maxmemory", "8mb", "--maxmemory-policy", "allkeys-lru"}));
  for (int i = 0; i < 100; ++i) {
    server.command({"SET", "k" + std::to_string(i), std::string(200'000, 'x')});
  }
  CHECK(examined(server.url()).status("evicted") == "warn");
}

TEST_CASE("doctor: a replica, and its master")
{
  const RedisServer master({.args = {"--appendonly", "yes"}, .tcp = true});
  const RedisServer replica(fit({"--replicaof", "127.0.0.1", std::to_string(master.port())}));
  const auto follows = [&] { return has(as_text(replica.command({"INFO", "replication"})), "master_link_status:up"); };
  wait_until(follows, "the replica follows");
  const Diagnosis told = examined(replica.url());
  CHECK(told.code == 1);
  CHECK(told.status("role") == "fail");
  CHECK(told.found("role") == "it is a replica of 127.0.0.1:" + std::to_string(master.port()));
  CHECK(told.status("lock") == "fail");
  const Diagnosis above = examined(master.url());
  CHECK(above.code == 0);
  CHECK(complaints(above) == "replicas=warn");
}

TEST_CASE("doctor: memory that is full, and nearly full")
{
  const RedisServer server(fit({"--maxmemory", "20mb"}));
  server.command({"CONFIG", "SET", "maxmemory", "1"});
  const Diagnosis full = examined(server.url());
  CHECK(full.code == 1);
  CHECK(full.status("memory") == "fail");
  CHECK(full.status("lock") == "fail");
  CHECK(has(full.found("lock"), "OOM"));
  server.command({"CONFIG", "SET", "maxmemory", "20mb"});
  for (int i = 0; i < 17; ++i) {
    REQUIRE_FALSE(server.command({"SET", "k" + std::to_string(i), std::string(1'000'000, 'x')}).is_error());
  }
  const Diagnosis nearly = examined(server.url());
  CHECK(nearly.code == 0);
  CHECK(complaints(nearly) == "memory=warn");
}

TEST_CASE("doctor: replicas that it asks for are not there")
{
  const RedisServer server(fit({"--min-replicas-to-write", "1"}));
  const Diagnosis told = examined(server.url());
  CHECK(told.code == 1);
  CHECK(told.status("min-replicas") == "fail");
  CHECK(told.status("lock") == "fail");
  CHECK(has(told.found("lock"), "NOREPLICAS"));
}

TEST_CASE("doctor: nothing is kept")
{
  const RedisServer nothing;
  const Diagnosis told = examined(nothing.url());
  CHECK(told.code == 0);
  CHECK(complaints(told) == "persistence=warn restart=warn");
  CHECK(told.found("persistence").starts_with("none"));
  const RedisServer snapshots({.args = {"--save", "3600 1"}});
  CHECK(examined(snapshots.url()).found("persistence").starts_with("snapshots"));
  const RedisServer careless(fit({"--appendfsync", "no"}));
  CHECK(complaints(examined(careless.url())) == "persistence=warn");
}

TEST_CASE("doctor: a disk that takes nothing")
{
  const RedisServer server({.args = {"--save", "3600 1", "--dbfilename", "taken.rdb"}});
  std::filesystem::create_directory(server.socket_path().parent_path() / "taken.rdb");
  server.command({"BGSAVE"});
  const auto has_failed = [&] {
    return has(as_text(server.command({"INFO", "persistence"})), "rdb_last_bgsave_status:err");
  };
  wait_until(has_failed, "the snapshot has failed");
  const Diagnosis told = examined(server.url());
  CHECK(told.code == 1);
  CHECK(told.status("disk") == "warn");
  CHECK(told.status("lock") == "fail");
  CHECK(has(told.found("lock"), "MISCONF"));
}

ACL_CASE("doctor: a user without the right to scripts, and one with no more rights than it needs")
{
  fixture.allow(acl_line("app:*"));
  const Diagnosis enough = diagnosis(fixture.run({"doctor", "--json", "--prefix", "app:"}));
  CHECK(enough.code == 0);
  CHECK(enough.status("lock") == "ok");
  CHECK(
      complaints(enough) ==
      "access=unknown idle-timeout=unknown min-replicas=unknown persistence=unknown restart=warn slow-scripts=unknown");
  CHECK(enough.found("persistence") == "not permitted");

  const Diagnosis outside = diagnosis(fixture.run({"doctor", "--json"}));
  CHECK(outside.code == 1);
  CHECK(outside.status("lock") == "fail");

  Words line = acl_line("app:*");
  for (const char* rule : {"-eval", "-evalsha", "-info"}) {
    line.emplace_back(rule);
  }
  fixture.allow(line);
  const Diagnosis told = diagnosis(fixture.run({"doctor", "--json", "--prefix", "app:"}));
  CHECK(told.code == 1);
  CHECK(told.status("lock") == "fail");
  CHECK(has(told.found("lock"), "NOPERM"));
  CHECK(told.status("eviction") == "unknown");
  CHECK(told.status("round-trip") == "ok");
}

TEST_CASE("doctor: a wrong clock, and a clock that runs too fast")
{
  const SkewedServer ahead("SKEW_MS=90000");
  const Diagnosis told = examined(ahead.server->url());
  CHECK(told.code == 0);
  CHECK(complaints(told) == "clock=warn");
  CHECK(told.found("clock") == "1m 30s ahead of this host's clock");
  const SkewedServer fast("SKEW_PERCENT=20");
  const Diagnosis wrong = examined(fast.server->url());
  CHECK(wrong.code == 1);
  CHECK(wrong.status("clock") == "fail");
}

TEST_CASE("doctor: a slow server, and a server busy with a script")
{
  const RedisServer server(fit({}));
  {
    const Burden burden(server);
    const auto has_evaluated = [&] { return has(as_text(server.command({"INFO", "commandstats"})), "cmdstat_eval:"); };
    wait_until(has_evaluated, "it is burdened");
    CHECK(examined(server.url(), {"--ttl", "500ms"}).status("round-trip") != "ok");
  }

  server.command({"CONFIG", "SET", "busy-reply-threshold", "200"});
  auto script = *Connection::open(*parse_url(server.url()), real_clock, within(plenty));
  REQUIRE(script.send(std::vector<std::string_view>{"EVAL", "while true do end", "0"}, within(plenty)));
  wait_until([&] { return server.command({"PING"}).is_error(); }, "it is busy");
  const Diagnosis busy = examined(server.url());
  CHECK(busy.code == 69);
  CHECK(complaints(busy) == "reach=fail");
  CHECK(has(busy.found("reach"), "SCRIPT KILL"));
  server.command({"SCRIPT", "KILL"});
}

TEST_CASE("doctor: too few connections, and such as end by themselves")
{
  const RedisServer server(fit({"--maxclients", "5", "--timeout", "5", "--busy-reply-threshold", "60000"}));
  std::vector<Connection> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(*Connection::open(*parse_url(server.url()), real_clock, within(plenty)));
  }
  const Diagnosis told = examined(server.url());
  CHECK(told.code == 0);
  CHECK(complaints(told) == "connections=warn idle-timeout=warn slow-scripts=warn");
  CHECK(told.found("connections").starts_with("4 of 5"));
}

TEST_CASE("doctor: a client that subscribes to all channels")
{
  const RedisServer server(fit());
  auto spy = *Connection::open(*parse_url(server.url()), real_clock, within(plenty));
  REQUIRE(spy.call(std::vector<std::string_view>{"PSUBSCRIBE", "*"}, within(plenty)));
  CHECK(complaints(examined(server.url())) == "listeners=warn");
}
