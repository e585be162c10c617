// SPDX-License-Identifier: Apache-2.0
// What an operator of PostgreSQL does with rlock: doctor, acl, bench.
#include "support/integration.h"
#include "support/postgres_fixture.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

Finished run_at(const std::string& url, Words args)
{
  args.insert(args.begin() + 1, {"-S", url});
  return run_rlock(args);
}

std::string rows_left(const PostgresServer& server)
{
  return server.sql(
      "select (select count(*) from rlock_lock) + (select count(*) from rlock_event) + "
      "(select count(*) from rlock_listener)");
}

}  // namespace

TEST_CASE("postgres doctor: a good server passes, in text and JSON, and keeps no row of the trial")
{
  const PostgresServer server;
  const Finished text = run_at(server.url(), {"doctor"});
  CHECK(text.code == 0);
  CHECK(has(text.out, "ok       lock          a trial lock was taken"));
  CHECK(has(text.out, "ok       messages"));
  CHECK(has(run_at(server.url(), {"doctor", "--json"}).out, R"({"check":"tables","status":"ok")"));
  CHECK(rows_left(server) == "0\n");
}

TEST_CASE("postgres doctor: a server that loses commits in a crash fails")
{
  const PostgresServer server({"fsync=off"});
  const Finished text = run_at(server.url(), {"doctor"});
  CHECK(text.code == 1);
  CHECK(has(text.out, "fail     persistence   fsync is off"));
}

TEST_CASE("postgres acl: a user without rights fails the doctor until the administrator has run what acl prints")
{
  const PostgresServer server;
  [[maybe_unused]] const std::string made =
      server.sql("create user deploy; revoke create on schema public from public");
  const std::string url = server.url("deploy");
  const Finished before = run_at(url, {"doctor"});
  CHECK(before.code == 1);
  CHECK(has(before.out, "rlock acl --user deploy"));
  const Finished printed = run_at(url, {"acl", "--user", "deploy"});
  CHECK(printed.code == 0);
  [[maybe_unused]] const std::string granted = server.sql(printed.out);
  CHECK(run_at(url, {"doctor"}).code == 0);
  CHECK(run_at(url, {"run", "-k", "k", "--", "true"}).code == 0);
}

TEST_CASE("postgres bench: it leaves no row")
{
  const PostgresServer server;
  CHECK(run_at(server.url(), {"bench", "--for", "50ms", "--connections", "2"}).code == 0);
  CHECK(rows_left(server) == "0\n");
}

TEST_CASE("postgres doctor: what keeps it from connecting comes with what to do")
{
  const PostgresServer server({"default_transaction_read_only=on"});
  const Finished read_only = run_at(server.url(), {"doctor"});
  CHECK(read_only.code == 69);
  CHECK_MESSAGE(has(read_only.out, "→ name the primary server"), read_only.out);
}

TEST_CASE("postgres doctor: a server that takes no more connections comes with what to do, and a run is 69")
{
  const PostgresServer server({"max_connections=8", "superuser_reserved_connections=0"});
  std::vector<Process> others;
  const std::string full = "too many clients already (raise max_connections, or end other clients)";
  wait_until(
      [&] {
        others.push_back(server.start_sql("select pg_sleep(600)"));
        const Finished run = run_at(server.url(), {"run", "-k", "k", "--", "true"});
        return run.code == 69 && has(run.err, full);
      },
      "the server is full");
  const Finished text = run_at(server.url(), {"doctor"});
  CHECK(text.code == 69);
  CHECK_MESSAGE(has(text.out, "→ raise max_connections, or end other clients"), text.out);
}

TEST_CASE("postgres doctor: a synchronous standby that is not there, and a foreign table of locks, are named")
{
  const PostgresServer server;
  (void)server.sql("create table rlock_lock(id int)");
  const Finished foreign = run_at(server.url(), {"doctor"});
  CHECK(foreign.code == 1);
  CHECK_MESSAGE(has(foreign.out, "fail     tables        a table rlock_lock is there, and is not rlock's"),
                foreign.out);
  (void)server.sql("drop table rlock_lock");
  CHECK(run_at(server.url(), {"doctor"}).code == 0);
  (void)server.sql("alter system set synchronous_standby_names = 'nosuch'");
  (void)server.sql("select pg_reload_conf()");
  wait_until([&] { return server.sql("show synchronous_standby_names") == "nosuch\n"; }, "the setting counts");
  const Finished alone = run_at(server.url(), {"doctor", "--server-timeout", "1s"});
  CHECK(alone.code == 1);
  CHECK_MESSAGE(has(alone.out, "synchronous_standby_names names a standby that is not connected"), alone.out);
}
