// SPDX-License-Identifier: Apache-2.0
// Locks in PostgreSQL, by rlock as a process: what other databases do not share.
#include "support/integration.h"
#include "support/limits.h"
#include "support/postgres_fixture.h"

using namespace rlock::test;

POSTGRES_CASE("postgres: no table and no right to make it is 77, create=no without a table is 78")
{
  CHECK(server.sql("create role bob login; revoke create on schema public from public").empty());
  expect_end(run_rlock({"run", "-S", server.url("bob"), "-k", "k", "--", "true"}), 77, {err_has("permission denied")});
  expect_end(run_rlock({"run", "-S", server.url("postgres", "create=no"), "-k", "k", "--", "true"}), 78,
             {err_has("rlock_lock")});
}

POSTGRES_CASE("postgres: tables that cannot be made are told with the reason")
{
  expect_end(
      run_rlock({"run", "-S", server.url("postgres", "options=-csearch_path%3Dnowhere"), "-k", "k", "--", "true"}), 78,
      {err_has("create the schema, or set search_path")});
}

POSTGRES_CASE("postgres: the end of the job interrupts a holder that begins to listen, of which no line tells")
{
  CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  const std::string end = (make_temp_dir("end") / "end").string();
  Process blocker = server.start_sql("begin; lock table rlock_listener in share mode; select pg_sleep(600)");
  const auto blocked = [&] { return server.sql("select count(*) from pg_locks where not granted"); };
  wait_until([&] { return server.sql("select count(*) from pg_locks where mode = 'ShareLock' and granted") != "0\n"; },
             "the table of listeners is locked");
  Process run =
      start_on(server, {"run", "-v", "-k", "k", "--", "sh", "-c", "until test -e " + end + "; do sleep 0.02; done"});
  wait_until([&] { return blocked() != "0\n"; }, "the holder begins to listen");
  std::ofstream(end).flush();
  expect_end(run, success, {err_lacks("cannot listen"), err_has("acquired k")});
}

POSTGRES_CASE("postgres: a listener whose row cannot be deleted leaves no transaction open")
{
  const BootClock clock;
  const auto backend = server.open_backend(clock);
  REQUIRE(backend->read("k", soon()));
  auto source = backend->listen(std::array{LockChannel{"k", "mine"}}, soon());
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
  const auto state = backend->read("k", soon());
  CHECK_MESSAGE(state, state.error().text);
}

TEST_CASE("postgres doctor: what keeps it from connecting comes with what to do")
{
  const PostgresServer server({"default_transaction_read_only=on"});
  expect_end(run_on(server, {"doctor"}), 69, {out_has("→ name the primary server")});
}

POSTGRES_CASE("postgres doctor: a synchronous standby that is not there, and a foreign table of locks, are named")
{
  (void)server.sql("create table rlock_lock(id int)");
  expect_end(run_on(server, {"doctor"}), 1,
             {out_has("fail     tables        a table rlock_lock is there, and is not rlock's")});
  (void)server.sql("drop table rlock_lock");
  CHECK(run_on(server, {"doctor"}).code == 0);
  (void)server.sql("alter system set synchronous_standby_names = 'nosuch'");
  (void)server.sql("select pg_reload_conf()");
  wait_until([&] { return server.sql("show synchronous_standby_names") == "nosuch\n"; }, "the setting counts");
  expect_end(run_on(server, {"doctor", "--server-timeout", "1s"}), 1,
             {out_has("synchronous_standby_names names a standby that is not connected")});
}
