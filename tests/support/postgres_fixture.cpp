// SPDX-License-Identifier: Apache-2.0
#include "support/postgres_fixture.h"

#include "support/skip.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>

#include <doctest/doctest.h>
#include <pwd.h>
#include <unistd.h>

namespace rlock::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

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

void run_to_end(Words argv)
{
  Process process(std::move(argv), {.env = {{"LC_ALL", "C"}}, .cwd = "/"});
  const Exit end = process.wait(60s);
  REQUIRE_MESSAGE(end == success, process.err());
}

// The processes whose parent is `pid`.
std::vector<pid_t> children_of(pid_t pid)
{
  std::ifstream list("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) {
    children.push_back(child);
  }
  return children;
}

}  // namespace

bool has_postgres() { return !program_directory().empty(); }

PostgresServer::PostgresServer(const std::vector<std::string>& settings)
    : m_dir(make_temp_dir("pg")), m_settings(settings)
{
  if (!has_postgres()) {
    skip("no PostgreSQL server (install postgresql)");
  }
  if (::geteuid() == 0) {
    const passwd* const user = ::getpwnam("postgres");
    REQUIRE(user != nullptr);
    REQUIRE(::chown(m_dir.c_str(), user->pw_uid, user->pw_gid) == 0);
    const fs::path all_temp_dirs = fs::temp_directory_path();
    for (fs::path above = m_dir.parent_path(); above != all_temp_dirs && above != above.parent_path();
         above = above.parent_path()) {  // the directory of the test case, which others may enter then, and no more
      std::error_code refused;
      fs::permissions(above, fs::perms::others_exec, fs::perm_options::add, refused);
    }
  }
  run_to_end(as_server_user({(program_directory() / "initdb").string(), "--no-sync", "-A", "trust", "-U", "postgres",
                             "-E", "UTF8", "--locale=C", "-D", (m_dir / "data").string()}));
  start();
}

PostgresServer::~PostgresServer() { signal_all(SIGKILL); }

Words PostgresServer::as_server_user(Words argv) const
{
  if (::geteuid() != 0) {
    return argv;
  }
  Words all{"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"};
  all.insert(all.end(), argv.begin(), argv.end());
  return all;
}

void PostgresServer::start()
{
  Words argv{
      (program_directory() / "postgres").string(), "-D", (m_dir / "data").string(), "-c", "listen_addresses=", "-c",
      "unix_socket_directories=" + m_dir.string(), "-c", "max_connections=500"};
  for (const std::string& setting : m_settings) {
    argv.insert(argv.end(), {"-c", setting});
  }
  m_server =
      std::make_unique<Process>(as_server_user(std::move(argv)), ProcessOptions{.cwd = "/", .new_session = true});
  wait_until_it_answers();
}

void PostgresServer::wait_until_it_answers()
{
  const std::string program = (program_directory() / "pg_isready").string();
  wait_until(
      [&] {
        Process ready({program, "-q", "-h", m_dir.string(), "-U", "postgres"}, {.cwd = "/"});
        return ready.wait() == success;
      },
      "PostgreSQL answers");
}

// The user is a parameter, because rlock hides what stands before the @ in its arguments, by which tests find its processes.
std::string PostgresServer::url(const std::string& user, const std::string& parameters) const
{
  return "postgresql:///postgres?host=" + m_dir.string() + "&user=" + user +
         (parameters.empty() ? "" : "&" + parameters);
}

std::string PostgresServer::sql(const std::string& text) const
{
  Process psql(
      {(program_directory() / "psql").string(), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text, url()},
      {.cwd = "/"});
  const Exit end = psql.wait();
  REQUIRE_MESSAGE(end == success, psql.err());
  return psql.out();
}

void PostgresServer::signal_all(int number) const
{
  if (m_server == nullptr) {
    return;
  }
  const auto children = children_of(m_server->pid());
  m_server->signal(number);
  for (const pid_t child : children) {
    ::kill(child, number);
  }
}

void PostgresServer::kill()
{
  signal_all(SIGKILL);
  m_server->wait();
  m_server.reset();
}

void PostgresServer::stop() { signal_all(SIGSTOP); }

void PostgresServer::resume() { signal_all(SIGCONT); }

}  // namespace rlock::test
