// SPDX-License-Identifier: Apache-2.0
#include "support/integration.h"

using namespace rlock::test;

SERVER_CASE("prometheus: status and list tell a collector")
{
  const Finished nothing = rlock_on(server, {"list", "-o", "prometheus"});
  CHECK(nothing.code == 0);  // no lock is held: no failure of the collector
  CHECK(nothing.out.ends_with("\nrlock_up 1\n"));
  REQUIRE(rlock_on(server, {"acquire", "-k", "stock", "--lease", "1m"}).code == 0);
  const Finished told = rlock_on(server, {"status", "--format", "prometheus", "stock", "free"});
  CHECK(told.code == 0);  // cron jobs publish with: rlock status ... >new && mv new old
  CHECK(has(told.out, "\nrlock_held{key=\"stock\"} 1\nrlock_held{key=\"free\"} 0\n"));
  const Finished listed = rlock_on(server, {"list", "--format", "prometheus"});
  expect_end(listed, 0, {out_has("\nrlock_holders{key=\"stock\"} 1\n"), out_has("# TYPE rlock_held gauge\n")});
  CHECK_FALSE(has(listed.out, "rlock_last_run"));  // no family without a sample
  CHECK(rlock_on(server, {"list", "--format", "json"}).out.starts_with("{\"key\":\"stock\""));
  CHECK(rlock_on(server, {"status", "stock", "free"}).code == 1);
  REQUIRE(rlock_on(server, {"acquire", "-k", "pool", "--permits", "3", "--lease", "1m"}).code == 0);
  const Finished pool = rlock_on(server, {"status", "--format", "prometheus", "pool", "stock"});
  CHECK(has(pool.out, "\nrlock_limit{key=\"pool\"} 3\n"));
  CHECK_FALSE(has(pool.out, "rlock_limit{key=\"stock\"}"));
  CHECK(has(rlock_on(server, {"status", "--json", "pool"}).out, "\"limit\":3,"));
  CHECK(has(rlock_on(server, {"status", "--json", "stock"}).out, "\"limit\":null,"));
  CHECK(run_rlock({"list", "--format", "xml"}).code == 64);
  CHECK(run_rlock({"list", "--json", "--format", "text"}).code == 64);
}

TEST_CASE("prometheus: a server that is away is a metric")
{
  const Finished away = run_rlock({"list", "-o", "prometheus", "-S", "unix:///nonexistent/socket"});
  CHECK(away.code == 0);
  CHECK(away.out.ends_with("\nrlock_up 0\n"));
  CHECK(!away.err.empty());
  CHECK(run_rlock({"status", "-o", "prometheus", "k", "-S", "unix:///nonexistent/socket"}).code == 0);
  CHECK(run_rlock({"list", "-S", "unix:///nonexistent/socket"}).code == 69);
}

SERVER_CASE("prometheus: the success that once remembers counts without its run")
{
  REQUIRE(rlock_on(server, {"once", "-k", "k", "--for", "1d", "--", "true"}).code == 0);
  REQUIRE(server.command({"DEL", "rlock:events:{k}"}).integer == 1);
  const Finished told = rlock_on(server, {"list", "--all", "-o", "prometheus"});
  CHECK(has(told.out, "\nrlock_last_success_timestamp_seconds{key=\"k\"} 1"));
}
