// SPDX-License-Identifier: Apache-2.0
#include "support/database_server.h"

#include "support/give_up.h"
#include "support/skip.h"
#include "support/sockets.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "support/wait_until.h"

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
  skip_if(account == nullptr, "no user " + user + " (install its server)");
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

std::string SqlServer::sql(const std::string& text) const
{
  Process client = start_sql(text);
  const Exit end = client.wait();
  REQUIRE_MESSAGE(end == success, client.err());
  return client.out();
}

std::vector<std::string> SqlServer::lock_names() const
{
  return lines_of(sql("select name from rlock_lock order by name"));
}

ClusterServer::ClusterServer(std::string_view purpose, std::size_t members) : DatabaseServer(purpose, "")
{
  for (std::size_t member = 0; member < members; ++member) {
    m_members.push_back({.port = free_port()});
  }
}

void ClusterServer::start()
{
  for (std::size_t member = 0; member < m_members.size(); ++member) {
    start_member(member);
  }
  await_members();
  m_is_there = true;
}

void ClusterServer::kill()
{
  for (std::size_t member = 0; member < m_members.size(); ++member) {
    kill_member(member);
  }
  m_is_there = false;
}

void ClusterServer::stop()
{
  for (std::size_t member = 0; member < m_members.size(); ++member) {
    stop_member(member);
  }
}

void ClusterServer::resume()
{
  for (std::size_t member = 0; member < m_members.size(); ++member) {
    resume_member(member);
  }
}

std::vector<std::uint16_t> ClusterServer::ports() const
{
  std::vector<std::uint16_t> all;
  for (const Member& member : m_members) {
    all.push_back(member.port);
  }
  return all;
}

std::size_t ClusterServer::leader() const
{
  const auto found = find_leader();
  if (!found) {
    give_up("no member is the leader");
  }
  return *found;
}

void ClusterServer::kill_member(std::size_t member)
{
  process_of(member).signal(SIGKILL);
  process_of(member).wait();
}

void ClusterServer::start_member(std::size_t member)
{
  m_members[member].process =
      std::make_unique<Process>(words_of_member(member), ProcessOptions{.cwd = dir(), .new_session = true});
}

void ClusterServer::await_members()
{
  for (std::size_t member = 0; member < m_members.size(); ++member) {
    wait_until(
        [&] {
          if (!process_of(member).running()) {
            give_up("a member has ended: " + process_of(member).err());
          }
          return serves(member);
        },
        "each member answers");
  }
}

bool is_held(const DatabaseServer& server, const std::string& key)
{
  return run_on(server, {"status", "--json", key}).out.find("\"held\":true") != std::string::npos;
}

Process held_run(const DatabaseServer& server, const Words& options, const Words& job)
{
  Process holder = start_run(server.url(), joined({"-k", "k"}, options), job);
  wait_until([&] { return is_held(server); }, "k is held");
  return holder;
}

std::string hosts_at(std::span<const std::uint16_t> ports)
{
  std::string all;
  for (const std::uint16_t port : ports) {
    all += (all.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
  }
  return all;
}

void run_to_end(Words argv)
{
  Process process(std::move(argv), {.env = {{"LC_ALL", "C"}}, .cwd = "/"});
  const Exit end = process.wait(60s);
  REQUIRE_MESSAGE(end == success, process.err());
}

}  // namespace rlock::test
