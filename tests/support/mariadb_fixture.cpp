// SPDX-License-Identifier: Apache-2.0
#include "support/mariadb_fixture.h"

#include "stores/mysql/mysql_backend.h"
#include "support/skip.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

#include <cstdlib>

#include <doctest/doctest.h>
#include <pwd.h>
#include <unistd.h>

namespace rlock::test {
namespace {

namespace fs = std::filesystem;

// The directory of a MySQL, with bin/mysqld. Empty: the server is MariaDB.
std::string mysql_tree()
{
  const char* const tree = std::getenv("RLOCK_TEST_MYSQL");
  return tree == nullptr ? "" : tree;
}

// Debian keeps the server in /usr/sbin, which is not in the PATH of a user. Empty: it is not there.
fs::path program(const char* name)
{
  for (const char* const directory : {"/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"}) {
    if (fs::exists(fs::path(directory) / name)) {
      return fs::path(directory) / name;
    }
  }
  return {};
}

std::string user_of_package()
{
  skip_if(!has_mariadb(),
          "no MariaDB server (install mariadb-server) and no MySQL (name its directory in RLOCK_TEST_MYSQL)");
  return "mysql";
}

std::string user_of_process()
{
  const passwd* const account = ::getpwuid(::geteuid());
  REQUIRE(account != nullptr);
  return account->pw_name;
}

}  // namespace

bool has_mariadb()
{
  if (!mysql_tree().empty()) {
    return fs::exists(fs::path(mysql_tree()) / "bin/mysqld") && !program("mariadb").empty();
  }
  return !program("mariadbd").empty() && !program("mariadb-install-db").empty() && !program("mariadb").empty();
}

MariadbServer::MariadbServer(const std::vector<std::string>& settings)
    : SqlServer("maria", user_of_package()), m_settings(settings)
{
  make_data_directory();
  MariadbServer::start();
  const std::string user = user_of_process();
  if (user != "root") {
    run_to_end(joined(console(), {"--user=root", "-e",
                                  "create user '" + user + "'@localhost; grant all on *.* to '" + user +
                                      "'@localhost with grant option"}));
  }
  run_to_end(joined(console(), {"-e", "create database app"}));
}

void MariadbServer::make_data_directory() const
{
  const std::string data = "--datadir=" + (dir() / "data").string();
  const std::string temporary = "--tmpdir=" + dir().string();
  run_to_end(as_server_user(
      is_mysql() ? Words{mysql_tree() + "/bin/mysqld", "--no-defaults", "--basedir=" + mysql_tree(),
                         "--initialize-insecure", data, temporary, "--innodb-flush-log-at-trx-commit=0"}
                 : Words{program("mariadb-install-db").string(), "--no-defaults", data, temporary,
                         "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
                         "--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=0"}));
}

bool MariadbServer::is_mysql() { return !mysql_tree().empty(); }

void MariadbServer::start()
{
  Words argv{is_mysql() ? mysql_tree() + "/bin/mysqld" : program("mariadbd").string(),
             "--no-defaults",
             "--datadir=" + (dir() / "data").string(),
             "--tmpdir=" + dir().string(),  // a server deletes temporary tables of others there
             "--socket=" + socket(),
             "--pid-file=" + (dir() / "pid").string(),
             "--skip-networking",
             "--skip-name-resolve",
             "--max-connections=500",
             "--innodb-buffer-pool-size=32M",
             "--innodb-fast-shutdown=0"};
  const Words of_program = is_mysql() ? Words{"--basedir=" + mysql_tree(), "--mysqlx=OFF", "--skip-log-bin"}
                                      : Words{"--innodb-log-file-size=16M"};
  argv.insert(argv.end(), of_program.begin(), of_program.end());
  for (const std::string& setting : m_settings) {
    argv.push_back("--" + setting);
  }
  start_process(std::move(argv));
  wait_until(
      [&] {
        REQUIRE_MESSAGE(is_running(), log());
        Process asked(joined(console(), {"--user=root", "-e", "select 1"}), {.cwd = "/"});
        return asked.wait() == success;
      },
      "MariaDB answers");
}

std::string MariadbServer::url(const std::string& user, const std::string& parameters) const
{
  return "mariadb://" + (user.empty() ? "" : user + "@") + "/app?socket=" + socket() +
         (parameters.empty() ? "" : "&" + parameters);
}

// Without TLS: since 11.4 it asks for a certificate, also on a socket.
Words MariadbServer::console() const
{
  return {program("mariadb").string(), "--no-defaults", "--skip-ssl", "--socket=" + socket()};
}

Words MariadbServer::client(const std::string& text) const
{
  return joined(console(), {"--batch", "--skip-column-names", "--database=app", "-e", text});
}

std::unique_ptr<record::Backend> MariadbServer::open_backend(const Clock& clock) const
{
  const auto endpoint = mysql::parse_mysql_url(url());
  REQUIRE(endpoint);
  return mysql::open_backend(mysql::connection_spec(*endpoint), clock, std::make_unique<SystemRng>());
}

// A connection may end before its KILL.
void MariadbServer::end_connections()
{
  Words argv =
      client(sql("select concat('kill ', id, ';') from information_schema.processlist where id <> connection_id() "
                 "and user = substring_index(current_user(), '@', 1)"));
  argv.push_back("--force");
  Process kills(argv, {.cwd = "/"});
  kills.wait();
}

}  // namespace rlock::test
