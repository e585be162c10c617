// SPDX-License-Identifier: Apache-2.0
// What PostgreSQL and MariaDB share, and what an operator of each database does with rlock: doctor, acl, bench.
#include "stores/mysql/mysql_backend.h"
#include "stores/postgres/postgres_backend.h"
#include "support/cleaning.h"
#include "support/databases.h"
#include "support/integration.h"

using namespace rlock::test;

namespace {

const Words run_true{"run", "-k", "k", "--", "true"};

bool is_mariadb(const DatabaseServer& server) { return server.url().starts_with("mariadb"); }

std::string rows_in(const SqlServer& server)
{
  return server.sql(
      "select (select count(*) from rlock_lock) + (select count(*) from rlock_event) + (select count(*) from "
      "rlock_listener)" +
      std::string(is_mariadb(server) ? " + (select count(*) from rlock_message)" : ""));
}

void nothing_is_left(const DatabaseServer& server)
{
  CHECK(server.lock_names().empty());
  if (const auto* const sql = dynamic_cast<const SqlServer*>(&server)) {
    CHECK(rows_in(*sql) == "0\n");
  }
}

// One test case for each server, whose body gets it.
#define SQL_CASE(title) SQL_CASE_NAMED(DOCTEST_ANONYMOUS(sql_case_), title)
#define SQL_CASE_NAMED(body, title)                             \
  static void body(const SqlServer& server);                    \
  TEST_CASE("postgres sql: " title) { body(PostgresServer()); } \
  TEST_CASE("mariadb sql: " title) { body(MariadbServer()); }   \
  static void body(const SqlServer& server)

void granted_by_acl(const SqlServer& server, const std::string& weak_user, const std::vector<std::string>& complaints)
{
  (void)server.sql(weak_user);
  const std::string url = server.url("deploy", "");
  const Finished before = run_at(url, {"doctor"});
  CHECK(before.code == 1);
  for (const std::string& each : complaints) {
    CHECK_MESSAGE(has(before.out, each), before.out);
  }
  const Finished printed = run_at(url, {"acl", "--user", "deploy"});
  CHECK(printed.code == 0);
  (void)server.sql(printed.out);
  CHECK(run_at(url, {"doctor"}).code == 0);
  CHECK(run_at(url, run_true).code == 0);
}

void full_server(const SqlServer& server, const std::string& sleep, const std::string& refusal)
{
  const std::string advice = "raise max_connections, or end other clients";
  std::vector<Process> others;
  wait_until(
      [&] {
        others.push_back(server.start_sql("select " + sleep));
        const Finished run = run_on(server, run_true);
        return run.code == 69 && has(run.err, refusal + " (" + advice + ")");
      },
      "the server is full");
  expect_end(run_on(server, {"doctor"}), 69, {out_has("→ " + advice)});
}

}  // namespace

SQL_CASE("a table of that name that is something else, and rows that are no records, are refused with 78")
{
  SUBCASE("table") { CHECK(server.sql("create table rlock_lock (name text)").empty()); }
  SUBCASE("record of a newer rlock")
  {
    CHECK(run_on(server, run_true).code == 0);
    CHECK(server.sql("update rlock_lock set record = 'rlock2'").empty());
    CHECK(has(run_on(server, run_true).err, "newer version of rlock"));
  }
  SUBCASE("damaged record")
  {
    CHECK(run_on(server, run_true).code == 0);
    CHECK(server.sql("update rlock_lock set record = substr(record, 1, 40)").empty());
  }
  CHECK(run_on(server, run_true).code == 78);
}

SQL_CASE("no grant and no renewal waits for the deletion of old rows")
{
  const BootClock clock;
  auto rng = std::make_unique<AlwaysCleaning>();
  const auto backend =
      is_mariadb(server)
          ? mysql::open_backend(mysql::connection_spec(*mysql::parse_mysql_url(server.url())), clock, std::move(rng))
          : postgres::open_backend(postgres::connection_spec(*postgres::parse_postgres_url(server.url())), clock,
                                   std::move(rng));
  const std::string long_ago =
      is_mariadb(server) ? "date_sub(utc_timestamp(6), interval 2 hour)" : "now() - interval '2 hours'";
  expect_cleaning_by_releases_alone(*backend, clock, [&] {
    return server.sql("update rlock_lock set forget_at = " + long_ago +
                      " where name = 'old'; select count(*) from rlock_lock where name = 'old'") == "1\n";
  });
}

TEST_CASE("sql: a URL with an unknown parameter is 64, and a password is never shown")
{
  for (const std::string scheme : {"postgresql", "mysql"}) {
    CAPTURE(scheme);
    expect_end(run_at(scheme + "://bob:hunter2@db/x?colour=blue", run_true), 64, {err_has("colour")});
    CHECK(run_at(scheme + "://bob:hunter2@127.0.0.1:1/x", run_true).code == 69);
  }
}

SQL_CASE("doctor: a good server passes, in text and JSON, and keeps no row of the trial")
{
  const Finished text = run_on(server, {"doctor"});
  CHECK(text.code == 0);
  expect_has(text.out, {"ok       lock          a trial lock was taken", "ok       messages"});
  CHECK(has(run_on(server, {"doctor", "--json"}).out, R"({"check":"tables","status":"ok")"));
  nothing_is_left(server);
}

// The servers of `databases` lose commits in a crash.
DATABASE_CASE("doctor takes a lock on trial, keeps nothing of it, and judges the server")
{
  const std::map<std::string, std::vector<std::string>> verdicts{
      {"postgresql", {"fail     persistence   fsync is off"}},
      {"mariadb", {"fail     persistence   innodb_flush_log_at_trx_commit is 2"}},
      {"mongodb", {"ok       role          one server"}},
      {"etcd", {"1 of 1 in the URL answer", "version       etcd 3.", "ok       clock         at most "}},
      {"zookeeper",
       {" version       ", "ZooKeeper 3.", "ok       clock         at most ", "warn     members       one server",
        "ok       sessions"}}};
  const Finished text = run_on(server, {"doctor"});
  CHECK_MESSAGE(has(text.out, "ok       lock          a trial lock was taken"), text.out);
  const std::string scheme = server.url().substr(0, server.url().find(':'));
  for (const std::string& verdict : verdicts.at(scheme)) {
    CHECK_MESSAGE(has(text.out, verdict), text.out);
    CHECK((text.code == 1 || !verdict.starts_with("fail")));
  }
  nothing_is_left(server);
}

DATABASE_CASE("bench leaves nothing")
{
  const Finished bench = run_on(server, {"bench", "--for", "50ms", "--connections", "2"});
  CHECK_MESSAGE(bench.code == 0, bench.err);
  nothing_is_left(server);
}

TEST_CASE("postgres acl: a user without rights fails the doctor until the administrator has run what acl prints")
{
  granted_by_acl(PostgresServer(), "create user deploy; revoke create on schema public from public",
                 {"rlock acl --user deploy"});
}
TEST_CASE("mariadb acl: a user without rights fails the doctor until the administrator has run what acl prints")
{
  granted_by_acl(MariadbServer(), "create user deploy@'%'; grant select on app.* to deploy@'%'",
                 {"CREATE command denied", "rlock acl prints the GRANT"});
}

TEST_CASE("postgres doctor: a server that takes no more connections comes with what to do, and a run is 69")
{
  full_server(PostgresServer({"max_connections=8", "superuser_reserved_connections=0"}), "pg_sleep(600)",
              "too many clients already");
}
TEST_CASE("mariadb doctor: a server that takes no more connections comes with what to do, and a run is 69")
{
  full_server(MariadbServer({"max-connections=10"}), "sleep(600)", "Too many connections");
}
