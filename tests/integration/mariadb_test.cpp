// SPDX-License-Identifier: Apache-2.0
// Locks in MariaDB, by rlock as a process: what other databases do not share.
#include "stores/mysql/mysql_backend.h"
#include "stores/mysql/mysql_connection.h"
#include "support/certificates.h"
#include "support/hostile_server.h"
#include "support/integration.h"
#include "support/limits.h"
#include "support/mariadb_fixture.h"
#include "support/seed.h"
#include "support/seeded_rng.h"
#include "support/skip.h"
#include "support/sockets.h"

#include <array>

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;

mysql::ConnectionSpec spec_of(const std::string& url) { return mysql::connection_spec(*mysql::parse_mysql_url(url)); }

Words run_true(const std::string& url) { return {"run", "-S", url, "-k", "k", "--", "true"}; }

int code_of(const std::string& url) { return run_rlock(run_true(url)).code; }

// By the server.
Certificate readable(Certificate certificate)
{
  for (const fs::path& file : {fs::path(certificate.file), fs::path(certificate.key)}) {
    fs::permissions(file.parent_path(), fs::perms::others_exec, fs::perm_options::add);
    fs::permissions(file, fs::perms::others_read, fs::perm_options::add);
  }
  return certificate;
}

// A server on a port of 127.0.0.1, too.
struct ServerWithPort {
  std::uint16_t port = free_port();
  MariadbServer server;

  explicit ServerWithPort(std::vector<std::string> settings) : server(with_port(std::move(settings))) {}
  // Of a user who may do everything in the database, from any host.
  [[nodiscard]] std::string url(const std::string& host) const
  {
    return "mysql://deploy:" + std::string(test_password) + "@" + host + ":" + std::to_string(port) + "/app";
  }
  [[nodiscard]] std::string url_without_password(const std::string& host) const
  {
    return "mysql://visitor@" + host + ":" + std::to_string(port) + "/app";
  }
  void add_user() const
  {
    (void)server.sql("create user deploy@'%' identified by '" + std::string(test_password) +
                     "'; grant all on app.* to deploy@'%'");
  }
  void add_user_without_password() const
  {
    (void)server.sql("create user visitor@'%'; grant all on app.* to visitor@'%'");
  }

 private:
  [[nodiscard]] std::vector<std::string> with_port(std::vector<std::string> settings) const
  {
    settings.insert(settings.end(), {"skip-networking=0", "bind-address=127.0.0.1", "port=" + std::to_string(port)});
    return settings;
  }
};

std::string packet(const std::string& payload, char number)
{
  return std::string{static_cast<char>(payload.size()), 0, 0, number} + payload;
}

// What a server says first. It offers TLS or not.
std::string greeting(const std::string& version, bool offers_tls = false)
{
  using namespace std::string_literals;
  return packet("\x0a" + version + "\0\1\0\0\0saltsalt\0\x09"s + (offers_tls ? '\x8a' : '\x82') +
                    "\x2d\2\0\x09\0\x15"s + std::string(10, '\0') + "saltsaltsalt\0mysql_native_password\0"s,
                0);
}

// Lets the next client of the socket log in, as a server of that version. Returns its first request.
std::string greet_one_client(const Fd& listener, const std::string& version)
{
  using namespace std::string_literals;
  const Fd client(::accept(listener.get(), nullptr, nullptr));
  const std::string hello = greeting(version);
  CHECK(::send(client.get(), hello.data(), hello.size(), MSG_NOSIGNAL) > 0);
  std::array<char, 1024> answer{};
  CHECK(::recv(client.get(), answer.data(), answer.size(), 0) > 0);
  const std::string ok = packet("\0\0\0\2\0\0\0"s, 2);
  CHECK(::send(client.get(), ok.data(), ok.size(), MSG_NOSIGNAL) > 0);
  const auto size = ::recv(client.get(), answer.data(), answer.size(), 0);
  REQUIRE(size >= 0);
  return {answer.data(), static_cast<std::size_t>(size)};
}

}  // namespace

MARIADB_CASE("mariadb: names differ in case, and one that the column cannot keep is 78")
{
  Process holder = start_rlock({"run", "-S", server.url(), "-k", "job", "--", "sleep", "60"});
  const auto code = [&](const std::string& key) {
    return run_rlock({"run", "-S", server.url(), "-n", "-k", key, "--", "true"}).code;
  };
  wait_until([&] { return code("job") == 75; }, "the lock is held");
  CHECK(code("JOB") == 0);
  CHECK(code("jöb\\'\"") == 0);
  CHECK(code(std::string(255, 'n')) == 0);
  CHECK(code(std::string(256, 'n')) == 78);
  CHECK(code("job ") == 78);
  CHECK(code("\xff") == 78);
}

MARIADB_CASE("mariadb: no right is 77 with what to do, create=no without a table is 78, and so is no database")
{
  (void)server.sql("create user bob@localhost; grant select on app.* to bob@localhost");
  expect_end(run_rlock(run_true(server.url("bob"))), 77,
             {err_has("CREATE command denied"), err_has("rlock acl prints the GRANT")});
  CHECK(run_rlock(run_true(server.url("alice:" + std::string(test_password)))).code == 77);
  expect_end(run_rlock(run_true(server.url("", "create=no"))), 78, {err_has("rlock_lock")});
  CHECK(server.sql("show tables").empty());
  expect_end(
      run_rlock(joined({"run", "-S", "mysql:///nothing?socket=" + server.url().substr(server.url().find('=') + 1)},
                       {"-k", "k", "--wait-server", "1m", "--", "true"})),
      78, {err_has("(create the database, or name another one)")});
}

TEST_CASE("mariadb: of several hosts the one that may be written to is used, and a read-only one is 69")
{
  const ServerWithPort standby({"read-only=1"});
  const ServerWithPort primary({});
  standby.add_user();
  primary.add_user();
  expect_end(run_rlock(run_true(standby.url("127.0.0.1"))), 69, {err_has("read-only")});
  CHECK(code_of(standby.server.url()) == 69);  // also as a user who may write nevertheless
  const std::string port = ":" + std::to_string(primary.port);
  CHECK(code_of(standby.url("127.0.0.1:1,127.0.0.1")) == 69);
  const std::string one = standby.url("127.0.0.1");
  const auto slash = one.rfind('/');
  CHECK(code_of(one.substr(0, slash) + ",127.0.0.1" + port + one.substr(slash)) == 0);
  CHECK(has(primary.server.sql("select name from rlock_lock"), "k"));
}

AUTHORITY_CASE("mariadb: TLS with a certificate of the host, and no connection with a wrong name, authority or no TLS")
{
  const Certificate right = readable(authority.sign("DNS:localhost"));
  const Certificate other = readable(authority.sign("DNS:db.example"));
  const std::string trusting = "?ssl-mode=verify_identity&ssl-ca=" + authority.file();
  {
    const ServerWithPort server({"ssl-cert=" + right.file, "ssl-key=" + right.key});
    server.add_user();
    server.add_user_without_password();
    CHECK(code_of(server.url("localhost") + trusting) == 0);
    CHECK(has(run_rlock({"doctor", "-S", server.url("localhost") + trusting}).out, "ok       encryption    TLS"));
    // libmariadb 3.4 lets a server with an unknown authority prove by the user's password that it is the right one.
    CHECK(code_of(server.url_without_password("localhost") + "?ssl-mode=verify_identity") == 69);
    CHECK(code_of(server.url_without_password("localhost") + "?ssl-mode=required") == 0);
    CHECK(code_of(server.url("localhost") + "?ssl-mode=required") == 0);
  }
  {
    const ServerWithPort server({"ssl-cert=" + other.file, "ssl-key=" + other.key});
    server.add_user();
    CHECK(code_of(server.url("localhost") + trusting) == 69);
    CHECK(code_of(server.url("localhost")) == 0);
  }
  const ServerWithPort plain({"skip-ssl"});
  plain.add_user();
  // MySQL asks for the password first, which it takes by TLS only.
  CHECK(code_of(plain.url("localhost") + "?ssl-mode=required") == (MariadbServer::is_mysql() ? 77 : 69));
}

AUTHORITY_CASE("mariadb: a server that stands still is given up in time behind TLS, too")
{
  const Certificate right = readable(authority.sign("DNS:localhost"));
  ServerWithPort all({"ssl-cert=" + right.file, "ssl-key=" + right.key});
  all.add_user();
  const std::string url = all.url("localhost") + "?ssl-mode=required";
  Process holder = start_rlock({"run", "-S", url, "-k", "k", "--ttl", "3s", "--", "sleep", "60"});
  wait_until([&] { return has(run_rlock({"list", "-S", url}).out, "sleep 60"); }, "the lock is held");
  all.server.stop();
  CHECK(holder.wait(20s) == exited(121));
  all.server.resume();
}

TEST_CASE("mariadb: a server that is silent in the handshake of TLS is given up in time")
{
  std::uint16_t port = 0;
  const Fd listener = tcp_listener(port);
  Process client = start_rlock({"run", "-S", "mysql://bob@127.0.0.1:" + std::to_string(port) + "/app?ssl-mode=required",
                                "--server-timeout", "1s", "-k", "k", "--", "true"});
  const Fd accepted(::accept(listener.get(), nullptr, nullptr));
  const std::string hello = greeting("8.0.33", true);
  CHECK(::send(accepted.get(), hello.data(), hello.size(), MSG_NOSIGNAL) > 0);
  CHECK(client.wait(20s) == exited(69));
  const bool by_time = has(client.err(), "did not answer within");
  const bool by_library =
      has(client.err(), "completed no login within");  // libmariadb 3.4 gives up by itself, and says no more
  CHECK_MESSAGE((by_time || by_library), client.err());
}

MARIADB_CASE("mariadb: user and password from a my.cnf")
{
  (void)server.sql("create user bob@localhost identified by 'hunter2'; grant all on app.* to bob@localhost");
  const fs::path file = make_temp_dir("options") / "my.cnf";
  std::ofstream(file) << "[client]\nuser=bob\npassword=hunter2\nhost=db.example\n";
  CHECK(code_of(server.url("", "defaults-file=" + file.string())) == 0);
  std::ofstream(file) << "[client]\nuser=bob\npassword=wrong\n";
  CHECK(code_of(server.url("", "defaults-file=" + file.string())) == 77);
}

MARIADB_CASE("mariadb: a user who may not log in is 77, and it is told why and what to do")
{
  (void)server.sql(
      "create user locked@localhost identified by 'hunter2' account lock; create user expired@localhost identified by "
      "'hunter2' password expire; grant all on app.* to locked@localhost; grant all on app.* to expired@localhost");
  const auto refusal = [&](const std::string& login) {
    const Finished end = run_rlock({"run", "-S", server.url(login), "-k", "k", "--", "true"});
    expect_end(end, 77, {err_lacks("hunter2")});
    return end.err;
  };
  CHECK_MESSAGE(has(refusal("locked:hunter2"), "account is locked (alter user ... account unlock"),
                refusal("locked:hunter2"));
  CHECK_MESSAGE(has(refusal("expired:hunter2"), " (give the user a new password there"), refusal("expired:hunter2"));
  CHECK_MESSAGE(has(refusal("expired:wrong"), "(check the user 'expired' and the password in the URL of --server)"),
                refusal("expired:wrong"));
}

MARIADB_CASE("mariadb: the job gets no socket of libmariadb, and SIGPIPE as it was")
{
  const Finished job = run_rlock(
      {"run", "-S", server.url(), "-k", "k", "--", "sh", "-c", "ls -l /proc/self/fd; grep SigIgn /proc/self/status"});
  expect_end(job, 0, {out_lacks("socket:")});
  const std::string digits = job.out.substr(job.out.find("SigIgn:") + 8, 16);
  CHECK((std::stoull(digits, nullptr, 16) >> (SIGPIPE - 1) & 1U) == 0);
}

MARIADB_CASE("mariadb: a client that is stopped at any moment keeps no row locked")
{
  CHECK(code_of(server.url()) == 0);
  SeededRng rng(seed());
  for (int i = 0; i < 30; ++i) {
    Process client = start_rlock({"run", "-S", server.url(), "-k", "k", "--ttl", "3s", "--", "true"});
    std::this_thread::sleep_for(std::chrono::microseconds(below(rng, 30'000)));
    client.signal(SIGSTOP);
    CHECK(has(server.sql("set innodb_lock_wait_timeout = 1; select name from rlock_lock for update"), "k"));
    client.signal(SIGCONT);
    CHECK(client.wait() == success);
  }
}

MARIADB_CASE("mariadb: a server that becomes read-only grants and renews nothing more, also for a user who may write")
{
  const BootClock clock;
  const auto backend = server.open_backend(clock);
  REQUIRE(backend->read("k", soon()));
  (void)server.sql("set global read_only = 1");
  const auto refused = backend->read("k", soon());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::server_not_ready);
  CHECK_MESSAGE(has(refused.error().text, "read-only"), refused.error().text);
  (void)server.sql("set global read_only = 0");
  CHECK(backend->read("k", soon()));
}

MARIADB_CASE("mariadb: a release whose KILL is not permitted keeps its connection")
{
  (void)server.sql("create user bob@localhost; grant all on app.* to bob@localhost");
  const BootClock clock;
  const auto hearer = server.open_backend(clock);
  REQUIRE(hearer->read("k", soon()));
  auto source = hearer->listen(std::array{LockChannel{"k", "mine"}}, soon());
  REQUIRE(source);
  const auto releaser = mysql::open_backend(spec_of(server.url("bob")), clock, std::make_unique<SystemRng>());
  const auto state = releaser->read("k", soon());
  REQUIRE(state);
  const std::string connections = "select id from information_schema.processlist where user = 'bob'";
  const std::string before = server.sql(connections);
  const std::array message{Message{"mine", "hello"}};
  const record::LogChange no_log;
  const auto commit =
      releaser->write_if("k", state->version, {.bytes = "x", .face = {}, .log = no_log, .messages = message}, soon());
  REQUIRE(commit);
  CHECK(std::holds_alternative<record::Committed>(*commit));
  CHECK_FALSE(before.empty());
  CHECK(server.sql(connections) == before);
  const auto heard = (*source)->next(soon());
  CHECK((heard && *heard && (*heard)->text == "hello"));
}

TEST_CASE("mariadb: tables that cannot be made are told with the reason, and another engine is no substitute")
{
  skip_if(MariadbServer::is_mysql(), "no setting of MySQL makes it use another engine");
  SUBCASE("the server forces another engine")
  {
    const MariadbServer server({"enforce-storage-engine=Aria"});
    expect_end(run_rlock(run_true(server.url())), 69, {err_has("NO_ENGINE_SUBSTITUTION")});
    CHECK(server.sql("show tables").empty());
  }
  SUBCASE("the server has no InnoDB")
  {
    const MariadbServer server({"innodb=OFF", "default-storage-engine=Aria"});
    expect_end(run_rlock(run_true(server.url())), 78, {err_has("InnoDB")});
  }
}

MARIADB_CASE("mariadb: a read on a node of Galera shows what another node has committed")
{
  skip_if(server.sql("show variables like 'wsrep_sync_wait'").empty(), "this MariaDB has no wsrep");
  const BootClock clock;
  mysql::Connection connection(spec_of(server.url()), clock);
  const auto answer = connection.ask("select @@session.wsrep_sync_wait", {clock.now() + 10s, StopToken::never()});
  REQUIRE(answer);
  CHECK(answer->front()[0][0] == "1");
}

TEST_CASE("mariadb: a server that is too old is 69, with its version")
{
  const std::string socket = (make_temp_dir("old") / "socket").string();
  const Fd listener = unix_listener(socket);
  for (const char* version : {"5.5.5-10.4.34-MariaDB", "5.6.51"}) {
    Process client = start_rlock(run_true("mysql://bob@/app?socket=" + socket));
    (void)greet_one_client(listener, version);
    expect_end(client, exited(69), {err_has("which is too old (rlock needs MariaDB 10.5 or MySQL 5.7, or later)")});
  }
}

TEST_CASE("mariadb: MySQL, to which a statement for MariaDB is a comment, gets no statement without a word")
{
  const std::string socket = (make_temp_dir("new") / "socket").string();
  const Fd listener = unix_listener(socket);
  Process client = start_rlock({"run", "-S", "mysql://bob@/app?socket=" + socket, "-n", "-k", "k", "--", "true"});
  std::string session = greet_one_client(listener, "8.0.33");
  CHECK(client.wait() == exited(69));
  for (auto begin = session.find("/*M!"); begin != std::string::npos; begin = session.find("/*M!")) {
    session.erase(begin, session.find("*/", begin) + 2 - begin);
  }
  CHECK_MESSAGE(has(session, "read committed;"), session);
  CHECK_FALSE(has(session, ";;"));
}

// Each is a default of the server for its sessions.
MARIADB_CASE("mariadb: the server's defaults for sessions change nothing of what rlock asks")
{
  for (const std::string key : {"a", "b", "c"}) {
    CHECK(run_rlock({"acquire", "-S", server.url(), "-k", key, "--lease", "5m"}).code == 0);
  }
  const auto ask = [&](const std::string& sql) { return server.sql("set sql_big_selects = 1; " + sql); };
  const auto connections = [&] {
    const std::string status = ask("show global status like 'Connections'");
    return std::stoi(status.substr(status.find('\t')));
  };
  std::vector<std::string> settings{"completion_type = 'RELEASE'", "completion_type = 'CHAIN'", "sql_select_limit = 1",
                                    "max_join_size = 1",           "unique_checks = 0",         "sql_mode = 'ANSI'",
                                    "sql_safe_updates = 1"};
  if (!MariadbServer::is_mysql()) {
    settings.emplace_back("max_statement_time = 0.01");
  }
  for (const std::string& setting : settings) {
    CAPTURE(setting);
    (void)ask("set global " + setting);
    CHECK(count(run_rlock({"list", "-S", server.url(), "--json"}).out, "\"key\"") == 3);
    const int before = connections();
    CHECK(run_rlock({"run", "-S", server.url(), "-k", "k", "--ttl", "1s", "--", "sleep", "1"}).code == 0);
    constexpr int few = 20;
    CHECK(connections() - before <= few);
    const Finished doctor = run_rlock({"doctor", "-S", server.url()});
    CHECK_MESSAGE(!has(doctor.out, "fail     lock"), doctor.out);
    CHECK_MESSAGE(!has(doctor.out, "fail     tables"), doctor.out);
    (void)ask("set global " + setting.substr(0, setting.find(' ')) + " = default");
  }
}

TEST_CASE("mariadb: the record of a lock stays below max_allowed_packet, and what does not is an error that names it")
{
  const MariadbServer server({"max-allowed-packet=8192"});
  for (int i = 0; i < 20; ++i) {
    CAPTURE(i);
    (void)succeeded(
        run_rlock({"run", "-S", server.url(), "-k", "k", "--", "sh", "-c", "true " + std::string(300, 'x')}));
  }
  const BootClock clock;
  mysql::Connection connection(spec_of(server.url()), clock);
  const auto refused =
      connection.ask("select '" + std::string(20'000, 'x') + "'", {clock.now() + 10s, StopToken::never()});
  REQUIRE_FALSE(refused);
  CHECK(connection.refusal() == mysql::Refusal::too_large);
  CHECK_MESSAGE(has(refused.error().text, "20009 bytes, but of 8192 (raise max_allowed_packet"), refused.error().text);
}

MARIADB_CASE("mariadb doctor: it runs no SLEEP beside that of the listener at the gate")
{
  (void)server.sql("set global log_output = 'TABLE', general_log = 1");
  const Finished text = run_on(server, {"doctor"});
  CHECK(has(text.out, "ok       messages"));
  CHECK(server
            .sql("select argument from mysql.general_log where argument like '%sleep(1)%' and "
                 "argument not like '%general_log%'")
            .empty());
  CHECK(has(server.sql("select argument from mysql.general_log"), "rlock_doctor"));
}

MARIADB_CASE("mariadb acl: a right that only the end of a run needs is missed before the job starts, and not by status")
{
  CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
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
    expect_end(run_at(url, {"run", "-k", "k", "--", "echo", "the-job-ran"}), 77, {out_is(""), err_has(grant(table))});
    CHECK(run_at(url, {"status", "k"}).code == 1);
    CHECK(run_at(url, {"doctor"}).code == 1);
  }
  (void)server.sql(all);
  CHECK(run_at(url, {"run", "-k", "k", "--", "true"}).code == 0);
}

MARIADB_CASE("mariadb: no table is made beside one of another program, and the doctor says so")
{
  (void)server.sql("create table rlock_lock(id int)");
  expect_end(run_on(server, {"run", "-k", "k", "--", "true"}), 78, {err_has("is not rlock's (use another database)")});
  CHECK(server.sql("show tables") == "rlock_lock\n");
  expect_end(run_on(server, {"doctor"}), 1, {out_lacks("the first lock makes them")});
  CHECK(server.sql("show tables") == "rlock_lock\n");
}

MARIADB_CASE("mariadb: files that the URL names and that cannot be read are 78 at once")
{
  for (const std::string file : {"defaults-file=/nowhere/my.cnf", "defaults-file=/tmp", "ssl-ca=/nowhere/ca.pem",
                                 "ssl-cert=/nowhere/cert.pem", "ssl-key=/nowhere/key.pem"}) {
    CAPTURE(file);
    expect_end(run_at(server.url("", file), {"run", "--wait-server", "1m", "-k", "k", "--", "echo", "the-job-ran"}), 78,
               {out_is(""), err_has(file.substr(file.find('=') + 1))});
  }
}

TEST_CASE("mariadb: a server that sends no greeting is told from one that cannot be reached")
{
  const HostileServer silent([](std::uint16_t) { return says(""); });
  expect_end(run_at("mysql://u@127.0.0.1:" + std::to_string(silent.port()) + "/app",
                    {"run", "--server-timeout", "500ms", "-k", "k", "--", "true"}),
             69, {err_has("see that it is MySQL or MariaDB")});
}

MARIADB_CASE("mariadb doctor: what keeps it from connecting comes with what to do")
{
  (void)server.sql("create user bob@'%'; create database other");
  const std::string url = server.url("bob");
  expect_end(run_at(url, {"doctor"}), 77, {out_has("→ rlock acl prints the GRANT that rlock needs")});
  std::string nowhere = server.url();
  nowhere.replace(nowhere.find("/app?"), 5, "/nowhere?");
  expect_end(run_at(nowhere, {"doctor"}), 78, {out_has("→ create the database, or name another one")});
}
