// SPDX-License-Identifier: Apache-2.0
#include "support/postgres_fixture.h"

#include "stores/postgres/postgres_backend.h"
#include "support/skip.h"
#include "support/sockets.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

#include <algorithm>
#include <fstream>

#include <doctest/doctest.h>

namespace rlock::test {
namespace {

namespace fs = std::filesystem;

// Debian keeps the programs of each version in a directory of its own. Empty: there are none.
fs::path program_directory()
{
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", none)) {
    if (fs::exists(version.path() / "bin/postgres") && fs::exists(version.path() / "bin/initdb")) {
      found.push_back(version.path() / "bin");
    }
  }
  std::ranges::sort(found);
  return found.empty() ? fs::path() : found.back();
}

constexpr const char* postgres_user = "postgres";

std::string required_user()
{
  skip_if(!has_postgres(), "no PostgreSQL server (install postgresql)");
  return postgres_user;
}

}  // namespace

bool has_postgres() { return !program_directory().empty(); }

std::string file_for_postgres(const std::string& text)
{
  const fs::path dir = make_temp_dir("pgfile");
  const fs::path file = dir / "file";
  std::ofstream(file) << text;
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  give_to_user(file, postgres_user);
  give_to_user(dir, postgres_user);
  return file.string();
}

PostgresServer::PostgresServer(const std::vector<std::string>& settings, bool on_tcp)
    : SqlServer("pg", required_user()), m_settings(settings)
{
  if (on_tcp) {
    m_port = free_port();
    m_settings.insert(m_settings.end(), {"listen_addresses=127.0.0.1", "port=" + std::to_string(m_port)});
  }
  run_to_end(as_server_user({(program_directory() / "initdb").string(), "--no-sync", "-A", "trust", "-U", "postgres",
                             "-E", "UTF8", "--locale=C", "-D", (dir() / "data").string()}));
  PostgresServer::start();
}

void PostgresServer::start()
{
  Words argv{
      (program_directory() / "postgres").string(), "-D", (dir() / "data").string(), "-c", "listen_addresses=", "-c",
      "unix_socket_directories=" + dir().string(), "-c", "max_connections=500"};
  for (const std::string& setting : m_settings) {
    argv.insert(argv.end(), {"-c", setting});
  }
  start_process(argv);
  wait_until(
      [&] {
        if (!is_running()) {  // after a crash it refuses to start while a process of the dead server has its shared memory
          start_process(argv);
        }
        return answers();
      },
      "PostgreSQL answers");
}

bool PostgresServer::answers() const
{
  Process ready({(program_directory() / "pg_isready").string(), "-q", "-d", url()}, {.cwd = "/"});
  return ready.wait() == success;
}

// The user is a parameter, because rlock hides what stands before the @ in its arguments, by which tests find its processes.
std::string PostgresServer::url(const std::string& user, const std::string& parameters) const
{
  return "postgresql:///postgres?host=" + dir().string() + "&user=" + user +
         (m_port == 0 ? "" : "&port=" + std::to_string(m_port)) + (parameters.empty() ? "" : "&" + parameters);
}

std::string PostgresServer::tcp_url(const std::string& user, const std::string& parameters) const
{
  return "postgresql://127.0.0.1:" + std::to_string(m_port) + "/postgres?user=" + user + "&" + parameters;
}

Process PostgresServer::start_sql(const std::string& text) const
{
  return Process(
      {(program_directory() / "psql").string(), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text, url()},
      {.cwd = "/"});
}

std::unique_ptr<record::Backend> PostgresServer::open_backend(const Clock& clock) const
{
  const auto endpoint = postgres::parse_postgres_url(url());
  REQUIRE(endpoint);
  return postgres::open_backend(postgres::connection_spec(*endpoint), clock, std::make_unique<SystemRng>());
}

void PostgresServer::make_standby() { std::ofstream(dir() / "data/standby.signal").flush(); }

void PostgresServer::end_connections()
{
  (void)sql(
      "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and "
      "backend_type = 'client backend'");
}

}  // namespace rlock::test
