// SPDX-License-Identifier: Apache-2.0
// PostgreSQL servers that refuse, that are no primary server, that are too old, or that speak nonsense: the right code, one clear
// line, and no job.
#include "support/hostile_server.h"
#include "support/integration.h"
#include "support/postgres_fixture.h"
#include "support/refusal.h"
#include "support/sockets.h"

using namespace rlock::test;

namespace {

// A message of the server, by PostgreSQL's protocol 3.
std::string framed(char type, const std::string& body)
{
  const auto size = static_cast<std::uint32_t>(body.size() + 4);
  std::string text(1, type);
  for (int shift = 24; shift >= 0; shift -= 8) {
    text += static_cast<char>(size >> shift & 0xFFU);
  }
  return text + body;
}

std::string ready() { return framed('Z', "I"); }

// The answer to a login without a password.
std::string welcome(const std::string& version)
{
  using namespace std::string_literals;
  const auto parameter = [](const std::string& name, const std::string& value) {
    return framed('S', name + '\0' + value + '\0');
  };
  return framed('R', "\0\0\0\0"s) + parameter("server_version", version) + parameter("client_encoding", "UTF8") +
         parameter("standard_conforming_strings", "on") + parameter("default_transaction_read_only", "off") +
         parameter("in_hot_standby", "off") + framed('K', "\0\0\0\1\0\0\0\2"s) + ready();
}

// A row with one column, which is the text.
std::string row(const std::string& text)
{
  using namespace std::string_literals;
  const std::string size{'\0', '\0', '\0', static_cast<char>(text.size())};
  return framed('T', "\0\1c\0"s + "\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0"s) +
         framed('D', "\0\1"s + size + text) + framed('C', "SELECT 1\0"s) + ready();
}

std::string url_of(const HostileServer& server)
{
  return "postgresql://u@127.0.0.1:" + std::to_string(server.port()) + "/d?sslmode=disable&gssencmode=disable";
}

}  // namespace

TEST_CASE("postgres refusals: a wrong password, or none, is 77, and the right one is accepted, and never shown")
{
  const std::string rules = file_for_postgres("local all postgres trust\nlocal all all scram-sha-256\n");
  const PostgresServer server({"hba_file=" + rules});
  CHECK(server.sql("create role bob login password 'hunter2'; grant all on schema public to bob").empty());
  const std::string url = server.url("bob");
  check_granted(url + "&password=hunter2");
  const std::string sources =
      " (check the URL, RLOCK_PASSWORD, RLOCK_PASSWORD_FILE, --password-file, PGPASSWORD or ~/.pgpass)";
  check_refused(url + "&password=wrong", 77,
                "password authentication failed for user \"bob\" (check the password in the URL of --server)");
  check_refused(url, 77, "no password supplied" + sources);
  check_refused(server.url("nobody"), 77, "no password supplied");
}

TEST_CASE("postgres refusals: no rule of pg_hba.conf, no such user and no right to connect are 77")
{
  const Words waits{"--wait-server", "1m"};
  const PostgresServer server;
  (void)server.sql("create role staff; create role deploy login");
  check_refused(server.url("bob"), 77, "role \"bob\" does not exist (create the user", waits);
  check_refused(server.url("staff"), 77, "is not permitted to log in (name a user that may log in)", waits);
  (void)server.sql("revoke connect on database postgres from public");
  check_refused(server.url("deploy"), 77, "permission denied for database \"postgres\" (grant connect on it)", waits);

  const std::string rules = file_for_postgres("local all postgres trust\n");
  const PostgresServer strict({"hba_file=" + rules});
  check_refused(strict.url("bob"), 77, "no pg_hba.conf entry", waits);
}

POSTGRES_CASE("postgres refusals: tables without the right to use them are 77, with the way to the GRANT")
{
  check_granted(server.url());
  CHECK(server.sql("create role bob login").empty());
  check_refused(server.url("bob"), 77, "rlock acl prints the GRANT");
}

TEST_CASE("postgres refusals: a read-only server, or a standby, is passed over for the next host, and alone it is 69")
{
  PostgresServer standby;
  standby.kill();
  standby.make_standby();
  standby.start();
  const PostgresServer read_only({"default_transaction_read_only=on"});
  const PostgresServer primary;
  const auto all_of = [](const std::vector<const PostgresServer*>& servers) {
    std::string hosts;
    for (const PostgresServer* each : servers) {
      hosts += (hosts.empty() ? "" : ",") + each->socket_directory().string();
    }
    return "postgresql:///postgres?user=postgres&host=" + hosts;
  };
  check_granted(all_of({&standby, &read_only, &primary}));
  check_refused(all_of({&standby}), 69, "session is read-only");
  check_refused(all_of({&standby, &read_only}), 69, "session is read-only");
  check_refused(all_of({&read_only}), 69, "if it is, turn default_transaction_read_only off");
}

TEST_CASE("postgres refusals: a first host that answers nothing leaves time for the next ones")
{
  const PostgresServer server({}, true);
  const SilentPort silent;
  const std::string ports = std::to_string(silent.number()) + "," + std::to_string(server.port());
  const auto check_in_time = [](const std::string& url) {
    const Finished end = run_job_at(url, {"--server-timeout", "2s"});
    CHECK_MESSAGE(end.code == 0, end.err);
  };
  check_in_time("postgresql://127.0.0.1,127.0.0.1/postgres?user=postgres&port=" + ports);
  check_in_time("postgresql:///postgres?user=postgres&hostaddr=127.0.0.1,127.0.0.1&port=" + ports);
  check_in_time("postgresql:///postgres?user=postgres&host=127.0.0.1," + server.socket_directory().string() +
                "&port=" + ports);
}

POSTGRES_CASE("postgres refusals: a name that is no UTF-8 is 78, and the longest name fits")
{
  check_granted(server.url());
  check_refused(server.url(), 78, "the name of the lock is no text of the database's encoding", {}, "caf\xe9");
  std::string longest;
  SystemRng rng;
  while (longest.size() < 1024) {  // PostgreSQL compresses what repeats
    longest += static_cast<char>('a' + below(rng, 26));
  }
  CHECK(run_job_at(server.url(), {}, longest).code == 0);
  const Finished other = run_rlock({"run", "-S", server.url(), "-k", "caf\xc3\xa9 \"x\\y\" 'z'", "--", "true"});
  CHECK_MESSAGE(other.code == 0, other.err);
}

POSTGRES_CASE("postgres refusals: a database of another encoding takes the names that it can write")
{
  CHECK(server.sql("create database latin encoding 'LATIN1' template template0 lc_collate 'C' lc_ctype 'C'").empty());
  const std::string url = server.url("postgres", "dbname=latin");
  const Finished written = run_rlock({"run", "-S", url, "-k", "caf\xc3\xa9", "--", "true"});
  CHECK_MESSAGE(written.code == 0, written.err);
  check_refused(url, 78, "no text of the database's encoding", {}, "\xe2\x82\xac");
}

TEST_CASE("postgres refusals: a server that is too old is 69, with its version")
{
  const HostileServer old([](std::uint16_t) {
    return answers_by_word({{.word = "SHOW", .reply = row("off")}, {.word = "", .reply = welcome("9.6.24")}});
  });
  check_refused(url_of(old), 69, "PostgreSQL 9.6 is too old (rlock needs PostgreSQL 12 or later)");
}

TEST_CASE("postgres refusals: a hostile server, at each step of a run, ends it in time with one clear line")
{
  using namespace std::string_literals;
  const std::string notice = framed('N', "SWARNING\0C01000\0M\x1b[31mlook\0\0"s);
  const std::string heard = framed('A', "\0\0\0\1rlock_x\0\x1b[31m\0"s);
  const std::string error = framed('E', "SFATAL\0VFATAL\0C57P01\0M\x1b[2Jgo away\0\0"s);
  const std::string again = framed('E', "SERROR\0VERROR\0CXXXXX\0M\x1b[2Jno\xff\0\0"s) + ready();
  const auto after_login = [](std::string reply, bool for_ever = false) {
    return answers_by_word(
        {{.word = "select", .reply = std::move(reply), .for_ever = for_ever}, {.word = "", .reply = welcome("15.4")}});
  };
  struct Row {
    const char* name;
    Behavior script;
  };
  const Row rows[] = {
      {"nonsense", says("HTTP/1.1 400 Bad Request\r\n\r\n")},
      {"closes", [](const Peer&) {}},
      {"stalls", says("")},
      {"drips", drips(welcome("15.4"))},
      {"login fails oddly", answers_with(error)},
      {"half a login", answers_with(welcome("15.4").substr(0, 30))},
      {"notices for ever instead of a login", says_for_ever("", notice)},
      {"a giant message", says("R\x7f\xff\xff\xff")},
      {"stalls after the login", after_login("")},
      {"nonsense after the login", after_login("?????????????")},
      {"a row of another table", after_login(row("x"))},
      {"no row", after_login(framed('C', "SELECT 0\0"s) + ready())},
      {"an error with control characters", after_login(again)},
      {"notices for ever", after_login(notice, true)},
      {"messages for ever", after_login(heard, true)},
      {"rows for ever", after_login(row("x").substr(0, row("x").size() - ready().size()), true)},
  };
  for (const Row& each : rows) {
    CAPTURE(each.name);
    const HostileServer server([&](std::uint16_t) { return each.script; });
    const auto begun = std::chrono::steady_clock::now();
    const Finished end = run_job_at(url_of(server), {"--server-timeout", "1s"});
    CHECK(std::chrono::steady_clock::now() - begun < 8s);
    CHECK_MESSAGE((end.code == 69 || end.code == 70 || end.code == 78), "code " << end.code << ": " << end.err);
    CHECK(end.out.empty());
    CHECK_MESSAGE(count(end.err, "\n") == 1, end.err);
    CHECK(is_clean(end.err));
  }
}

TEST_CASE("postgres refusals: a server that ends each connection at the first request is asked again until -w is over")
{
  using namespace std::string_literals;
  const std::string error = framed('E', "SFATAL\0VFATAL\0C57P01\0M\x1b[2Jgo away\0\0"s);
  const HostileServer server([&](std::uint16_t) {
    return answers_by_word({{.word = "select", .reply = error}, {.word = "", .reply = welcome("15.4")}});
  });
  const auto begun = std::chrono::steady_clock::now();
  const Finished end = run_job_at(url_of(server), {"--server-timeout", "1s", "-w", "1s"});
  CHECK(std::chrono::steady_clock::now() - begun < 8s);
  CHECK_MESSAGE((end.code == 69 || end.code == 75), "code " << end.code << ": " << end.err);
  CHECK(end.out.empty());
  CHECK(has(end.err, "go away; trying again"));
  CHECK(is_clean(end.err));
}

POSTGRES_CASE("postgres refusals: a right that only the end of a run needs is missed before its job, and not by status")
{
  check_granted(server.url());
  CHECK(server.sql("create role bob login").empty());
  const std::string all = "grant select, insert, update, delete on rlock_lock, rlock_event, rlock_listener to bob;";
  const std::string url = server.url("bob");
  for (const std::string right : {"update on rlock_lock", "delete on rlock_event", "insert on rlock_listener",
                                  "delete on rlock_lock", "update on rlock_event"}) {
    CHECK(server.sql(all + "revoke " + right + " from bob").empty());
    check_refused(url, 77, "the user bob lacks " + right + " (run: grant select, insert, update, delete on ");
    CHECK(run_rlock({"status", "-S", url, "k"}).code == 1);
  }
  CHECK(server.sql(all).empty());
  check_granted(url);
  CHECK(server
            .sql("revoke all on rlock_lock from bob; grant select, delete, insert (name, version, record, locked_by, "
                 "lock_until, forget_at), update (version, record, locked_by, lock_until, forget_at) on rlock_lock to "
                 "bob")
            .empty());
  check_granted(url);
}

TEST_CASE("postgres refusals: what is wrong in the URL ends rlock at once, also with --wait-server")
{
  const PostgresServer server({}, true);
  const Words waits{"--wait-server", "1m"};
  check_refused(server.tcp_url("postgres", "sslmode=bogus"), 78, "invalid sslmode value", waits);
  check_refused(server.tcp_url("postgres", "service=nowhere"), 78, "definition of service", waits);
  check_refused("postgresql://postgres@127.0.0.1/postgres?port=notaport", 64, "a port is not from 1 to 65535", waits);
  check_refused(server.url("postgres", "dbname=nowhere"), 78,
                "database \"nowhere\" does not exist (create the database, or name another one)", waits);
}

POSTGRES_CASE("postgres refusals: tables that only their session would see are not made, and the doctor says so")
{
  CHECK(server.sql("create role bob login; grant create on schema public to bob; create schema app authorization bob")
            .empty());
  const std::string url = server.url("bob", "options=-csearch_path%3Dpg_temp,public");
  const auto fails = [](const std::string& at) {
    const Finished doctor = run_rlock({"doctor", "-S", at});
    CHECK_MESSAGE(has(doctor.out, "fail     tables"), doctor.out);
    return doctor.code == 1;
  };
  SUBCASE("by the URL")
  {
    check_refused(url, 78, "would be temporary");
    CHECK(fails(url));
  }
  SUBCASE("by the role")
  {
    CHECK(server.sql("alter role bob set search_path = pg_temp").empty());
    check_refused(server.url("bob"), 78, "would be temporary");
    CHECK(fails(server.url("bob")));
  }
  SUBCASE("as ShedLock's")
  {
    check_refused(server.url("bob", "table=pg_temp.shedlock&create=yes"), 78, "would be temporary");
  }
  SUBCASE("tables that are there are used")
  {
    check_granted(server.url("bob"));
    check_granted(url);
    CHECK(run_rlock({"doctor", "-S", url}).code == 0);
  }
  SUBCASE("some are there")
  {
    check_granted(server.url("bob"));
    CHECK(server.sql("drop table rlock_listener").empty());
    check_refused(url, 78, "would be temporary");
  }
  CHECK(server.sql("select relname from pg_class where relpersistence = 't' and relkind = 'r'").empty());
}

POSTGRES_CASE("postgres refusals: the doctor fails where a crash empties a table")
{
  check_granted(server.url());
  CHECK(server.sql("alter table rlock_event set unlogged").empty());
  expect_end(run_rlock({"doctor", "-S", server.url()}), 1, {out_has("alter table rlock_event set logged")});
}
