// SPDX-License-Identifier: Apache-2.0
#include "process/script_tree.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>
#include "process/process_tree.h"

namespace rlock {
namespace {

constexpr int highest_digit = 9;
constexpr int lowest_digit = 3;

// Opens the write end of a pipe once more. No descriptor: that is not allowed, or it is gone.
Fd open_to_write(const std::string& path)
{
  return Fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
}

bool is_pipe_without_reader(const std::string& path)
{
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0 || !S_ISFIFO(found.st_mode)) {
    return false;
  }
  const Fd end = open_to_write(path);
  pollfd pipe{.fd = end.get(), .events = 0, .revents = 0};
  return end && ::poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLERR) != 0;
}

// True where /proc does not show the process.
bool is_free(pid_t pid, int descriptor)
{
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor);
  struct stat link {};
  return ::lstat(path.c_str(), &link) != 0 || is_pipe_without_reader(path);
}

}  // namespace

Result<ScriptPipe> ScriptPipe::open()
{
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return Error{ErrorCode::os, "cannot make a pipe: " + std::generic_category().message(errno)};
  }
  return ScriptPipe(Fd(ends[0]), Fd(ends[1]));
}

std::string ScriptPipe::path_in(pid_t keeper) const
{
  std::string path = "/proc/" + std::to_string(keeper) + "/fd/" + std::to_string(m_write.get());
  return open_to_write(path) ? path : "";
}

bool ScriptPipe::is_joined()
{
  char byte = 0;
  if (m_write && ::read(m_read.get(), &byte, 1) == 1) {
    m_write.reset();
  }
  return !m_write;
}

bool ScriptPipe::is_held() const
{
  pollfd pipe{.fd = m_read.get(), .events = 0, .revents = 0};
  return ::poll(&pipe, 1, 0) == 0;
}

Result<int> descriptor_for_pipe(pid_t script, pid_t shell)
{
  const std::string process = "process " + std::to_string(script);
  const std::string directory = "/proc/" + std::to_string(script);
  struct stat owner {};
  if (::stat(directory.c_str(), &owner) == 0 && owner.st_uid != ::geteuid()) {
    return Error{ErrorCode::os, process + " runs as another user"};
  }
  if (numbers_in((directory + "/fd").c_str()).empty()) {
    return Error{ErrorCode::os, "/proc does not show the descriptors of " + process};
  }
  for (int digit = highest_digit; digit >= lowest_digit; --digit) {
    if (is_free(script, digit) && is_free(shell, digit)) {
      return digit;
    }
  }
  return Error{ErrorCode::os, process + " has no free descriptor from 3 to 9"};
}

namespace {

class MemberSearch {
 public:
  MemberSearch(const std::vector<ScriptProcess>& seen, const ScriptRules& rules) : m_rules(rules)
  {
    for (const ScriptProcess& each : seen) {
      m_by_pid.emplace(each.process.pid, each);
      m_children[each.process.parent].push_back(each.process.pid);
    }
  }

  ScriptMembers result()
  {
    add(m_rules.script);
    for (const auto& [pid, each] : m_by_pid) {
      if (m_rules.members.contains(pid) || (each.has_pipe && !is_spared(each.process))) {
        add(pid);
      }
    }
    for (std::size_t i = 0; i < m_found.members.size(); ++i) {
      add_children(m_found.members[i].process);
    }
    for (const auto& [pid, each] : m_by_pid) {
      if (each.has_pipe && !m_added.contains(pid)) {
        m_found.daemons.insert(each.process.session);
      }
    }
    return std::move(m_found);
  }

 private:
  void add(pid_t pid)
  {
    const auto found = m_by_pid.find(pid);
    if (found != m_by_pid.end() && m_added.insert(pid).second) {
      m_found.members.push_back(found->second);
    }
  }

  void add_children(const ProcessInfo parent)
  {
    const auto children = m_children.find(parent.pid);
    if (children == m_children.end()) {
      return;
    }
    const bool may_have_daemons = adopts_orphans(parent.pid);
    for (const pid_t child : children->second) {
      if (!may_have_daemons || m_by_pid.at(child).process.session == parent.session) {
        add(child);
      }
    }
  }

  [[nodiscard]] bool is_daemon(pid_t session) const
  {
    if (m_rules.sessions.contains(session)) {
      return false;
    }
    return !m_rules.daemons || m_rules.daemons->contains(session);
  }

  // A daemon, or what a daemon has started since.
  [[nodiscard]] bool is_spared(const ProcessInfo& process) const
  {
    std::set<pid_t> passed;
    for (const ProcessInfo* at = &process; passed.insert(at->pid).second;) {
      const auto parent = m_by_pid.find(at->parent);
      if (is_daemon(at->session)) {
        return true;
      }
      if (parent == m_by_pid.end() || !parent->second.has_pipe || at->pid == m_rules.script) {
        return false;
      }
      at = &parent->second.process;
    }
    return false;
  }

  const ScriptRules& m_rules;
  std::map<pid_t, ScriptProcess> m_by_pid;
  std::map<pid_t, std::vector<pid_t>> m_children;
  std::set<pid_t> m_added;
  ScriptMembers m_found;
};

}  // namespace

ScriptMembers members_of(const std::vector<ScriptProcess>& seen, const ScriptRules& rules)
{
  return MemberSearch(seen, rules).result();
}

ScriptTree::ScriptTree(pid_t pid, const PidFd& script, const ScriptPipe& pipe)
    : m_script(script), m_pipe(pipe), m_rules{.script = pid, .sessions = {::getsid(pid), pid}}
{
}

// The number of a script that has ended may be another process's by now.
std::vector<ScriptProcess> ScriptTree::alive()
{
  std::erase_if(m_without_pipe, [](const auto& each) { return each.second.has_ended(); });
  const std::string pipe = link_of(m_pipe.fd());
  std::vector<ScriptProcess> seen;
  for (const pid_t pid : numbers_in("/proc")) {
    const auto process = pid == ::getpid() ? std::nullopt : read_process(pid);
    if (process && !process->is_zombie()) {
      seen.push_back({*process, has_open(pid, pipe)});
    }
  }
  ScriptRules rules = m_rules;
  if (m_script.has_ended()) {
    rules.script = 0;
  }
  for (const auto& [pid, process] : m_without_pipe) {
    rules.members.insert(pid);
  }
  auto [members, daemons] = members_of(seen, rules);
  m_daemons = std::move(daemons);
  for (const auto& [process, has_pipe] : members) {
    if (!has_pipe && process.pid != rules.script && !m_without_pipe.contains(process.pid)) {
      if (auto opened = PidFd::open(process.pid)) {
        m_without_pipe.emplace(process.pid, *std::move(opened));
      }
    }
  }
  return members;
}

// Looks twice, because a process that one search sees may fork before its death another that this search does not see.
bool ScriptTree::is_empty()
{
  if (!m_script.has_ended()) {
    return false;
  }
  std::erase_if(m_without_pipe, [](const auto& each) { return each.second.has_ended(); });
  return (!m_pipe.is_held() && m_without_pipe.empty()) || (alive().empty() && alive().empty());
}

void ScriptTree::keep_sessions()
{
  for (const ScriptProcess& each : alive()) {
    m_rules.sessions.insert(each.process.session);
  }
}

void ScriptTree::decide_daemons()
{
  if (!m_rules.daemons) {
    alive();
    m_rules.daemons = m_daemons;
  }
}

// The children of a process that this signal ends get other parents, and one search may miss those that are made meanwhile.
void ScriptTree::stop(int signal)
{
  decide_daemons();
  std::set<pid_t> signalled;
  for (int i = 0; i < 2; ++i) {
    for (const ScriptProcess& each : alive()) {
      if (signalled.insert(each.process.pid).second) {
        send_and_wake(each.process.pid, signal);
      }
    }
  }
}

std::vector<LeftProcess> ScriptTree::kill_each()
{
  std::vector<LeftProcess> left;
  for (const auto& [process, has_pipe] : alive()) {
    left.push_back({.pid = process.pid, .refused = !send_signal(process.pid, SIGKILL), .state = process.state});
  }
  return left;
}

std::vector<LeftProcess> ScriptTree::kill_all(Millis time_limit)
{
  const BootClock clock;
  const Instant give_up = clock.now() + time_limit;
  decide_daemons();
  for (;;) {
    std::vector<LeftProcess> left = kill_each();
    if (left.empty() && is_empty()) {
      return {};
    }
    const bool only_refused = !left.empty() && std::ranges::all_of(left, &LeftProcess::refused);
    if (only_refused || clock.now() >= give_up) {
      return left;
    }
    wait_for_a_death(left, give_up);
  }
}

}  // namespace rlock
