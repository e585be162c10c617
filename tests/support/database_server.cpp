// SPDX-License-Identifier: Apache-2.0
#include "support/database_server.h"

#include "support/skip.h"
#include "support/temp_dir.h"

#include <csignal>
#include <fstream>
#include <utility>

#include <doctest/doctest.h>
#include <pwd.h>
#include <unistd.h>

namespace rlock::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

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

void give_to_user(const fs::path& path, const std::string& user)
{
  if (::geteuid() != 0) {
    return;
  }
  const passwd* const account = ::getpwnam(user.c_str());
  if (account == nullptr) {
    skip("no user " + user + " (install its server)");
  }
  REQUIRE(::chown(path.c_str(), account->pw_uid, account->pw_gid) == 0);
  const fs::path all_temp_dirs = fs::temp_directory_path();
  for (fs::path above = path.parent_path(); above != all_temp_dirs && above != above.parent_path();
       above = above.parent_path()) {  // the directory of the test case, which others may enter then, and no more
    std::error_code refused;
    fs::permissions(above, fs::perms::others_exec, fs::perm_options::add, refused);
  }
}

DatabaseServer::DatabaseServer(std::string_view purpose, std::string user)
    : m_dir(make_temp_dir(purpose)), m_user(std::move(user))
{
  if (has_other_user()) {
    give_to_user(m_dir, m_user);
  }
}

bool DatabaseServer::has_other_user() const { return ::geteuid() == 0 && !m_user.empty(); }

DatabaseServer::~DatabaseServer() { signal_all(SIGKILL); }

Words DatabaseServer::as_server_user(Words argv) const
{
  if (!has_other_user()) {
    return argv;
  }
  Words all{"setpriv", "--reuid=" + m_user, "--regid=" + m_user, "--clear-groups"};
  all.insert(all.end(), argv.begin(), argv.end());
  return all;
}

void DatabaseServer::start_process(Words argv)
{
  m_server =
      std::make_unique<Process>(as_server_user(std::move(argv)), ProcessOptions{.cwd = "/", .new_session = true});
}

void DatabaseServer::signal_all(int number) const
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

void DatabaseServer::kill()
{
  signal_all(SIGKILL);
  m_server->wait();
  m_server.reset();
}

void DatabaseServer::stop()
{
  signal_all(SIGSTOP);
  stop_process(m_server->pid());
}

void DatabaseServer::resume() { signal_all(SIGCONT); }

void run_to_end(Words argv)
{
  Process process(std::move(argv), {.env = {{"LC_ALL", "C"}}, .cwd = "/"});
  const Exit end = process.wait(60s);
  REQUIRE_MESSAGE(end == success, process.err());
}

}  // namespace rlock::test
