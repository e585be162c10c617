// SPDX-License-Identifier: Apache-2.0
// Locks in PostgreSQL, by rlock as a process: what other databases do not share.
#include "stores/postgres/postgres_backend.h"
#include "support/cleaning.h"
#include "support/integration.h"
#include "support/postgres_fixture.h"

using namespace rlock::test;

namespace {

Words with_server(const PostgresServer& server, Words args)
{
  args.insert(args.begin() + 1, {"-S", server.url()});
  return args;
}

Finished run_on(const PostgresServer& server, Words args) { return run_rlock(with_server(server, std::move(args))); }

}  // namespace

TEST_CASE("postgres: a table of that name that is something else, and rows that are no records, are refused with 78")
{
  const PostgresServer server;
  SUBCASE("table")
  {
    CHECK(server.sql("create table rlock_lock (name text)").empty());
    const Finished run = run_on(server, {"run", "-k", "k", "--", "true"});
    CHECK(run.code == 78);
  }
  SUBCASE("record of a newer rlock")
  {
    CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
    CHECK(server.sql("update rlock_lock set record = 'rlock2'").empty());
    const Finished run = run_on(server, {"run", "-k", "k", "--", "true"});
    CHECK(run.code == 78);
    CHECK(run.err.find("newer version of rlock") != std::string::npos);
  }
  SUBCASE("damaged record")
  {
    CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
    CHECK(server.sql("update rlock_lock set record = substr(record, 1, 40)").empty());
    CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 78);
  }
}

TEST_CASE("postgres: no table and no right to make it is 77, create=no without a table is 78")
{
  const PostgresServer server;
  CHECK(server.sql("create role bob login; revoke create on schema public from public").empty());
  const Finished refused = run_rlock({"run", "-S", server.url("bob"), "-k", "k", "--", "true"});
  CHECK(refused.code == 77);
  CHECK(refused.err.find("permission denied") != std::string::npos);
  const Finished missing = run_rlock({"run", "-S", server.url("postgres", "create=no"), "-k", "k", "--", "true"});
  CHECK(missing.code == 78);
  CHECK(missing.err.find("rlock_lock") != std::string::npos);
}

TEST_CASE("postgres: tables that cannot be made are told with the reason")
{
  const PostgresServer server;
  const Finished run =
      run_rlock({"run", "-S", server.url("postgres", "options=-csearch_path%3Dnowhere"), "-k", "k", "--", "true"});
  CHECK(run.code == 78);
  CHECK_MESSAGE(has(run.err, "create the schema, or set search_path"), run.err);
}

TEST_CASE("postgres: the end of the job interrupts a holder that begins to listen, of which no line tells")
{
  const PostgresServer server;
  CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  const std::string end = (make_temp_dir("end") / "end").string();
  Process blocker = server.start_sql("begin; lock table rlock_listener in share mode; select pg_sleep(600)");
  const auto blocked = [&] { return server.sql("select count(*) from pg_locks where not granted"); };
  wait_until([&] { return server.sql("select count(*) from pg_locks where mode = 'ShareLock' and granted") != "0\n"; },
             "the table of listeners is locked");
  Process run = start_rlock(with_server(
      server, {"run", "-v", "-k", "k", "--", "sh", "-c", "until test -e " + end + "; do sleep 0.02; done"}));
  wait_until([&] { return blocked() != "0\n"; }, "the holder begins to listen");
  std::ofstream(end).flush();
  CHECK(run.wait() == success);
  CHECK_MESSAGE(!has(run.err(), "cannot listen"), run.err());
  CHECK_MESSAGE(has(run.err(), "acquired k"), run.err());
}

TEST_CASE("postgres: a listener whose row cannot be deleted leaves no transaction open")
{
  const PostgresServer server;
  const BootClock clock;
  const auto limit = [&] { return CallLimits{.deadline = clock.now() + 10s, .stop = StopToken::never()}; };
  const auto backend = server.open_backend(clock);
  REQUIRE(backend->read("k", limit()));
  auto source = backend->listen(std::array{LockChannel{"k", "mine"}}, limit());
  REQUIRE(source);
  (void)server.sql("alter table rlock_listener rename to elsewhere");
  source->reset();
  wait_until(
      [&] {
        return server.sql(
                   "select count(*) from pg_stat_activity where query like '%delete from "
                   "rlock_listener%' and pid <> pg_backend_pid() and state <> 'active'") == "1\n";
      },
      "the server has refused the deletion");
  (void)server.sql("alter table elsewhere rename to rlock_listener");
  const auto state = backend->read("k", limit());
  CHECK_MESSAGE(state, state.error().text);
}

TEST_CASE("postgres: no grant and no renewal waits for the deletion of old rows")
{
  const PostgresServer server;
  const BootClock clock;
  const auto backend = postgres::open_backend(postgres::connection_spec(*postgres::parse_postgres_url(server.url())),
                                              clock, std::make_unique<AlwaysCleaning>());
  expect_cleaning_by_releases_alone(*backend, clock, [&] {
    return server.sql(
               "update rlock_lock set forget_at = now() - interval '2 hours' where name = 'old'; "
               "select count(*) from rlock_lock where name = 'old'") == "1\n";
  });
}

TEST_CASE("postgres: an URL that libpq does not understand is 64, and a password is never shown")
{
  const Finished unknown =
      run_rlock({"run", "-S", "postgresql://bob:hunter2@db/x?colour=blue", "-k", "k", "--", "true"});
  CHECK(unknown.code == 64);
  CHECK(unknown.err.find("colour") != std::string::npos);
  const Finished away = run_rlock({"run", "-S", "postgresql://bob:hunter2@127.0.0.1:1/x", "-k", "k", "--", "true"});
  CHECK(away.code == 69);
}
