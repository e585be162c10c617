// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "support/queue_fixture.h"
#include "support/redis_fixture.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <csignal>
#include <string>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

TEST_CASE("prometheus: status and list tell a collector")
{
  const RedisServer server;
  const Finished nothing = run_rlock({"list", "-S", server.url(), "-o", "prometheus"});
  CHECK(nothing.code == 0);  // no lock is held: no failure of the collector
  CHECK(nothing.out.empty());
  REQUIRE(run_rlock({"acquire", "-S", server.url(), "-k", "stock", "--lease", "1m"}).code == 0);
  const Finished told = run_rlock({"status", "-S", server.url(), "--format", "prometheus", "stock", "free"});
  CHECK(told.code == 0);  // cron jobs publish with: rlock status ... >new && mv new old
  CHECK(told.out.find("\nrlock_held{key=\"stock\"} 1\nrlock_held{key=\"free\"} 0\n") != std::string::npos);
  const Finished listed = run_rlock({"list", "-S", server.url(), "--format", "prometheus"});
  CHECK(listed.code == 0);
  CHECK(listed.out.find("\nrlock_holders{key=\"stock\"} 1\n") != std::string::npos);
  CHECK(listed.out.find("# TYPE rlock_held gauge\n") != std::string::npos);
  CHECK(listed.out.find("rlock_last_run") == std::string::npos);  // no family without a sample
  CHECK(run_rlock({"list", "-S", server.url(), "--format", "json"}).out.starts_with("{\"key\":\"stock\""));
  CHECK(run_rlock({"status", "-S", server.url(), "stock", "free"}).code == 1);
  REQUIRE(run_rlock({"acquire", "-S", server.url(), "-k", "pool", "--permits", "3", "--lease", "1m"}).code == 0);
  const Finished pool = run_rlock({"status", "-S", server.url(), "--format", "prometheus", "pool", "stock"});
  CHECK(pool.out.find("\nrlock_limit{key=\"pool\"} 3\n") != std::string::npos);
  CHECK(pool.out.find("rlock_limit{key=\"stock\"}") == std::string::npos);
  CHECK(run_rlock({"status", "-S", server.url(), "--json", "pool"}).out.find("\"limit\":3,") != std::string::npos);
  CHECK(run_rlock({"status", "-S", server.url(), "--json", "stock"}).out.find("\"limit\":null,") != std::string::npos);
  CHECK(run_rlock({"list", "--format", "xml"}).code == 64);
  CHECK(run_rlock({"list", "--json", "--format", "text"}).code == 64);
}

TEST_CASE("prometheus: status tells a collector of the last run, also of a free lock")
{
  const RedisServer server;
  REQUIRE(run_rlock({"run", "-S", server.url(), "-k", "k", "--", "true"}).code == 0);
  REQUIRE(run_rlock({"run", "-S", server.url(), "-k", "k", "--", "false"}).code == 1);
  REQUIRE(run_rlock({"run", "-S", server.url(), "-k", "k", "--", "/nonexistent/job"}).code == 127);  // without the lock
  const Finished told = run_rlock({"status", "-S", server.url(), "-o", "prometheus", "k"});
  CHECK(told.code == 0);
  for (const std::string sample : {"last_run_exit_code{key=\"k\"} 127", "recent_acquired{key=\"k\"} 2",
                                   "recent_succeeded{key=\"k\"} 1", "recent_failed{key=\"k\"} 2"}) {
    CHECK_MESSAGE(told.out.find("\nrlock_" + sample + "\n") != std::string::npos, told.out);
  }
  CHECK(told.out.find("\nrlock_last_success_timestamp_seconds{key=\"k\"} 1") != std::string::npos);
}

TEST_CASE("prometheus: how long runs waited")
{
  QueueFixture fixture;
  Process holder = fixture.hold("30s");
  fixture.add_waiter();
  const Instant begin = BootClock().now();
  wait_until([&] { return BootClock().now() - begin > 60ms; }, "the waiter has waited");
  holder.signal(SIGTERM);
  holder.wait();
  CHECK(fixture.waiters.front().wait() == Exit{0});
  const auto waited = [&](const std::string& key) {
    const Finished told = run_rlock({"status", "-S", fixture.server.url(), "-o", "prometheus", key});
    const std::string family = "\nrlock_recent_waited_seconds{key=\"" + key + "\"} ";
    const std::size_t at = told.out.find(family);
    return at == std::string::npos ? -1 : std::stod(told.out.substr(at + family.size()));
  };
  CHECK(waited("k") >= 0.06);
  CHECK(waited("free") == -1);
}
