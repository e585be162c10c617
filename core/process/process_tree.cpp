// SPDX-License-Identifier: Apache-2.0
#include "process/process_tree.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>
#include "process/signals.h"

namespace rlock {

bool send_signal(pid_t target, int signal) { return ::kill(target, signal) == 0 || errno != EPERM; }

bool send_and_wake(pid_t target, int signal)
{
  const bool allowed = send_signal(target, signal);
  ::kill(target, SIGCONT);
  return allowed;
}

namespace {

// Wakes the target after a signal that asks to end, as timeout(1) does, so that a stopped process ends too.
bool send_as_user(pid_t target, int signal)
{
  return asks_to_end(signal) ? send_and_wake(target, signal) : send_signal(target, signal);
}

bool may_be_signalled(const ProcessInfo& process) { return process.is_zombie() || send_signal(process.pid, 0); }

}  // namespace

bool adopts_orphans(pid_t pid) { return std::ranges::find(own_names, command_name(pid)) != own_names.end(); }

namespace {

bool is_nested_daemon(const ProcessInfo& process, const ProcessFamily& family)
{
  const auto parent = std::ranges::find(family, process.parent, &ProcessInfo::pid);
  return parent != family.end() && parent->session != process.session && adopts_orphans(parent->pid);
}

// The processes that stay with a daemon of a nested job: itself and its descendants, which come after it in the family.
std::set<pid_t> nested_daemons(const ProcessFamily& family)
{
  std::set<pid_t> daemons;
  for (const ProcessInfo& process : family) {
    if (daemons.contains(process.parent) || is_nested_daemon(process, family)) {
      daemons.insert(process.pid);
    }
  }
  return daemons;
}

}  // namespace

// The kernel reports only the deaths of children, and at once only those of all descendants that have a descriptor. A dead
// process that its tracer has not released has one that is always readable.
void wait_for_a_death(const std::vector<LeftProcess>& dying, Instant deadline)
{
  constexpr std::size_t most_descriptors = 64;
  constexpr Millis short_pause{2};
  constexpr Millis look_again{20};  // for processes that were made meanwhile
  std::vector<PidFd> processes;
  std::vector<pollfd> waits;
  for (const LeftProcess& process : dying) {
    const bool may_die = process.pid != 0 && !process.refused && process.state != 'Z';
    if (auto opened = may_die && waits.size() < most_descriptors ? PidFd::open(process.pid)
                                                                 : Result<PidFd>(Error{ErrorCode::usage, ""})) {
      waits.push_back({.fd = opened->fd(), .events = POLLIN, .revents = 0});
      processes.push_back(*std::move(opened));
    }
  }
  const Instant now = BootClock().now();
  poll_until(waits, now, std::min(deadline, now + (waits.empty() ? short_pause : look_again)));
}

ProcessTree::ProcessTree(pid_t main, Grouping grouping)
    : m_main(main),
      m_own_session(main),
      m_group(grouping == Grouping::own ? main : ::getpgid(main)),
      m_grouping(grouping)
{
}

ProcessTree::ProcessTree(std::vector<pid_t> spared_children, std::set<pid_t> daemons, pid_t main)
    : m_own_session(main), m_spared(std::move(spared_children)), m_daemons(std::move(daemons))
{
}

void ProcessTree::reap()
{
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED);
    if (pid < 0 && errno == EINTR) {
      continue;
    }
    if (pid <= 0) {
      m_childless = pid < 0 && errno == ECHILD;
      return;
    }
    if (pid != m_main) {
      continue;
    }
    if (WIFSTOPPED(status)) {
      m_pause = WSTOPSIG(status);
    } else {
      m_status = status;
      m_main = 0;
    }
  }
}

std::optional<int> ProcessTree::take_pause() { return std::exchange(m_pause, std::nullopt); }

// `setsid CMD` does not fork when it leads no group, so the main process may have a session of its own.
bool ProcessTree::is_daemon(pid_t session) const
{
  if (session == ::getsid(0) || session == m_own_session || m_sessions.contains(session)) {
    return false;
  }
  return !m_daemons || m_daemons->contains(session);
}

std::set<pid_t> ProcessTree::daemons() const
{
  if (m_daemons) {
    return *m_daemons;
  }
  std::set<pid_t> sessions;
  for (const pid_t child : own_children()) {
    const pid_t session = ::getsid(child);
    if (session > 0 && is_daemon(session)) {
      sessions.insert(session);
    }
  }
  return sessions;
}

// A dead child of this process counts until it is reaped, because its own children became children of this process just
// now and may not be in the list. A dead child of another process does not count.
std::vector<ProcessInfo> ProcessTree::alive() const
{
  const pid_t self = ::getpid();
  std::vector<ProcessInfo> found;
  for (const ProcessFamily& family : own_families(m_spared)) {
    if (is_daemon(family.front().session)) {
      continue;
    }
    const std::set<pid_t> daemons = nested_daemons(family);
    std::ranges::copy_if(family, std::back_inserter(found), [&](const ProcessInfo& process) {
      return !daemons.contains(process.pid) && (!process.is_zombie() || process.parent == self);
    });
  }
  return found;
}

bool ProcessTree::is_empty() const { return m_childless || (m_main == 0 && alive().empty() && !has_unseen_children()); }

// The group's number cannot be given to another group until its leader is reaped, nor while a child is in the group.
bool ProcessTree::leads_group() const { return m_grouping == Grouping::own && (m_main != 0 || has_child_in(m_group)); }

ProcessTree::Refused ProcessTree::forward(int signal)
{
  if (asks_to_end(signal)) {
    for (const ProcessInfo& process : alive()) {
      m_sessions.insert(process.session);
    }
  }
  if (leads_group() && send_as_user(-m_group, signal)) {
    return {};
  }
  Refused refused;
  for (const ProcessInfo& process : alive()) {
    // The main process may have left the group: an interactive shell does.
    const bool is_target = process.group == m_group || process.pid == m_main;
    if (is_target && !send_as_user(process.pid, signal) && !process.is_zombie()) {
      refused.push_back(process.pid);
    }
  }
  return refused;
}

// The whole group by one system call, so that a process that is forking cannot escape; then the others. The children of a process
// that this signal ends move to this process, and one search may miss them, so those that were seen before count as well.
ProcessTree::Refused ProcessTree::stop(int signal)
{
  m_daemons = daemons();
  std::vector<ProcessInfo> all = alive();
  if (leads_group()) {
    send_and_wake(-m_group, signal);
  }
  for (const ProcessInfo& process : alive()) {
    if (std::ranges::count(all, process.pid, &ProcessInfo::pid) == 0) {
      all.push_back(process);
    }
  }
  Refused refused;
  for (const ProcessInfo& process : all) {
    if (!leads_group() || process.group != m_group) {
      send_and_wake(process.pid, signal);
    }
    if (!may_be_signalled(process)) {
      refused.push_back(process.pid);
    }
  }
  return refused;
}

std::vector<LeftProcess> ProcessTree::kill_each() const
{
  if (leads_group()) {
    ::kill(-m_group, SIGKILL);
  }
  std::vector<LeftProcess> left;
  for (const ProcessInfo& process : alive()) {
    const bool refused = !send_signal(process.pid, SIGKILL) && !process.is_zombie();
    left.push_back({.pid = process.pid, .refused = refused, .state = process.state});
  }
  if (left.empty() && has_unseen_children()) {
    left.push_back({});
  }
  return left;
}

std::vector<LeftProcess> ProcessTree::kill_all(Millis time_limit)
{
  const BootClock clock;
  const Instant give_up = clock.now() + time_limit;
  m_daemons = daemons();
  for (;;) {
    reap();
    if (m_childless) {
      return {};
    }
    std::vector<LeftProcess> left = kill_each();
    if (left.empty() && m_main == 0) {
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
