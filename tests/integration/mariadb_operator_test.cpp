// SPDX-License-Identifier: Apache-2.0
// What an operator of MariaDB does with rlock: doctor, acl, bench.
#include "support/hostile_server.h"
#include "support/integration.h"
#include "support/mariadb_fixture.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

Finished run_at(const std::string& url, Words args)
{
  args.insert(args.begin() + 1, {"-S", url});
  return run_rlock(args);
}

std::string rows_left(const MariadbServer& server)
{
  return server.sql(
      "select (select count(*) from rlock_lock) + (select count(*) from rlock_event) + "
      "(select count(*) from rlock_listener) + (select count(*) from rlock_message)");
}

}  // namespace

TEST_CASE("mariadb doctor: a good server passes, in text and JSON, and keeps no row of the trial")
{
  const MariadbServer server;
  const Finished text = run_at(server.url(), {"doctor"});
  CHECK(text.code == 0);
  CHECK(has(text.out, "ok       lock          a trial lock was taken"));
  CHECK(has(text.out, "ok       messages"));
  CHECK(has(run_at(server.url(), {"doctor", "--json"}).out, R"({"check":"tables","status":"ok")"));
  CHECK(rows_left(server) == "0\n");
}

TEST_CASE("mariadb doctor: a server that loses commits in a crash fails")
{
  const MariadbServer server({"innodb-flush-log-at-trx-commit=2"});
  const Finished text = run_at(server.url(), {"doctor"});
  CHECK(text.code == 1);
  CHECK(has(text.out, "fail     persistence   innodb_flush_log_at_trx_commit is 2"));
}

TEST_CASE("mariadb doctor: it runs no SLEEP beside that of the listener at the gate")
{
  const MariadbServer server;
  (void)server.sql("set global log_output = 'TABLE', general_log = 1");
  const Finished text = run_at(server.url(), {"doctor"});
  CHECK(has(text.out, "ok       messages"));
  CHECK(server
            .sql("select argument from mysql.general_log where argument like '%sleep(1)%' and "
                 "argument not like '%general_log%'")
            .empty());
  CHECK(has(server.sql("select argument from mysql.general_log"), "rlock_doctor"));
}

TEST_CASE("mariadb acl: a user without rights fails the doctor until the administrator has run what acl prints")
{
  const MariadbServer server;
  (void)server.sql("create user deploy@'%'; grant select on app.* to deploy@'%'");
  const std::string url = server.url("deploy");
  const Finished before = run_at(url, {"doctor"});
  CHECK(before.code == 1);
  CHECK(has(before.out, "CREATE command denied"));
  CHECK(has(before.out, "rlock acl prints the GRANT"));
  const Finished printed = run_at(url, {"acl", "--user", "deploy"});
  CHECK(printed.code == 0);
  (void)server.sql(printed.out);
  CHECK(run_at(url, {"doctor"}).code == 0);
  CHECK(run_at(url, {"run", "-k", "k", "--", "true"}).code == 0);
}

TEST_CASE("mariadb bench: it leaves no row")
{
  const MariadbServer server;
  CHECK(run_at(server.url(), {"bench", "--for", "50ms", "--connections", "2"}).code == 0);
  CHECK(rows_left(server) == "0\n");
}

TEST_CASE("mariadb acl: a right that only the end of a run needs is missed before the job starts, and not by status")
{
  const MariadbServer server;
  CHECK(run_at(server.url(), {"run", "-k", "k", "--", "true"}).code == 0);
  (void)server.sql("create user bob@'%'");
  const std::string url = server.url("bob");
  const auto grant = [](const std::string& table) {
    return "grant select, insert, update, delete on " + table + " to 'bob'@'%';";
  };
  const std::string all = grant("rlock_lock") + grant("rlock_event") + grant("rlock_listener") + grant("rlock_message");
  for (const auto& lacking :
       {std::pair("insert", "rlock_message"), std::pair("delete", "rlock_event"), std::pair("delete", "rlock_lock"),
        std::pair("update", "rlock_lock"), std::pair("insert", "rlock_listener")}) {
    const std::string right = lacking.first;
    const std::string table = lacking.second;
    CAPTURE(table);
    (void)server.sql(all + "revoke " + right + " on " + table + " from bob@'%'");
    const Finished end = run_at(url, {"run", "-k", "k", "--", "echo", "the-job-ran"});
    CHECK_MESSAGE(end.code == 77, end.err);
    CHECK(end.out.empty());
    CHECK_MESSAGE(has(end.err, grant(table)), end.err);
    CHECK(run_at(url, {"status", "k"}).code == 1);
    CHECK(run_at(url, {"doctor"}).code == 1);
  }
  (void)server.sql(all);
  CHECK(run_at(url, {"run", "-k", "k", "--", "true"}).code == 0);
}

TEST_CASE("mariadb: no table is made beside one of another program, and the doctor says so")
{
  const MariadbServer server;
  (void)server.sql("create table rlock_lock(id int)");
  const Finished end = run_at(server.url(), {"run", "-k", "k", "--", "true"});
  CHECK(end.code == 78);
  CHECK_MESSAGE(has(end.err, "is not rlock's (use another database)"), end.err);
  CHECK(server.sql("show tables") == "rlock_lock\n");
  const Finished doctor = run_at(server.url(), {"doctor"});
  CHECK(doctor.code == 1);
  CHECK_MESSAGE(!has(doctor.out, "the first lock makes them"), doctor.out);
  CHECK(server.sql("show tables") == "rlock_lock\n");
}

TEST_CASE("mariadb: files that the URL names and that cannot be read are 78 at once")
{
  const MariadbServer server;
  for (const std::string file : {"defaults-file=/nowhere/my.cnf", "defaults-file=/tmp", "ssl-ca=/nowhere/ca.pem",
                                 "ssl-cert=/nowhere/cert.pem", "ssl-key=/nowhere/key.pem"}) {
    CAPTURE(file);
    const Finished end =
        run_at(server.url("", file), {"run", "--wait-server", "1m", "-k", "k", "--", "echo", "the-job-ran"});
    CHECK_MESSAGE(end.code == 78, end.err);
    CHECK(end.out.empty());
    CHECK_MESSAGE(has(end.err, file.substr(file.find('=') + 1)), end.err);
  }
}

TEST_CASE("mariadb: a server that sends no greeting is told from one that cannot be reached")
{
  const HostileServer silent([](std::uint16_t) { return says(""); });
  const Finished end = run_at("mysql://u@127.0.0.1:" + std::to_string(silent.port()) + "/app",
                              {"run", "--server-timeout", "500ms", "-k", "k", "--", "true"});
  CHECK(end.code == 69);
  CHECK_MESSAGE(has(end.err, "see that it is MySQL or MariaDB"), end.err);
}

TEST_CASE("mariadb doctor: what keeps it from connecting comes with what to do")
{
  const MariadbServer server;
  (void)server.sql("create user bob@'%'; create database other");
  const std::string url = server.url("bob");
  const Finished refused = run_at(url, {"doctor"});
  CHECK(refused.code == 77);
  CHECK_MESSAGE(has(refused.out, "→ rlock acl prints the GRANT that rlock needs"), refused.out);
  std::string nowhere = server.url();
  nowhere.replace(nowhere.find("/app?"), 5, "/nowhere?");
  const Finished missing = run_at(nowhere, {"doctor"});
  CHECK(missing.code == 78);
  CHECK_MESSAGE(has(missing.out, "→ create the database, or name another one"), missing.out);
}

TEST_CASE("mariadb doctor: a server that takes no more connections comes with what to do, and a run is 69")
{
  const MariadbServer server({"max-connections=10"});
  std::vector<Process> others;
  const std::string full = "Too many connections (raise max_connections, or end other clients)";
  wait_until(
      [&] {
        others.push_back(server.start_sql("select sleep(600)"));
        const Finished run = run_at(server.url(), {"run", "-k", "k", "--", "true"});
        return run.code == 69 && has(run.err, full);
      },
      "the server is full");
  const Finished text = run_at(server.url(), {"doctor"});
  CHECK(text.code == 69);
  CHECK_MESSAGE(has(text.out, "→ raise max_connections, or end other clients"), text.out);
}
