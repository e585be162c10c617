// SPDX-License-Identifier: Apache-2.0
#include "process/process_tree.h"

#include "base/text.h"
#include "process/signals.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

namespace rlock {
namespace {

// False: it may not be signalled. For a group: none of its processes may be.
bool send(pid_t target, int signal) { return ::kill(target, signal) == 0 || errno != EPERM; }

bool send_and_wake(pid_t target, int signal)
{
  const bool allowed = send(target, signal);
  ::kill(target, SIGCONT);
  return allowed;
}

// As timeout(1): a signal that ends processes also ends stopped ones.
bool send_as_user(pid_t target, int signal)
{
  return asks_to_end(signal) ? send_and_wake(target, signal) : send(target, signal);
}

bool may_be_signalled(const Process& process) { return process.is_zombie() || send(process.pid, 0); }

}  // namespace

ProcessTree::ProcessTree(pid_t main, Grouping grouping)
    : m_main(main),
      m_own_session(main),
      m_group(grouping == Grouping::own ? main : ::getpgid(main)),
      m_grouping(grouping)
{
}

ProcessTree::ProcessTree(std::vector<pid_t> spared_children, pid_t main)
    : m_own_session(main), m_spared(std::move(spared_children))
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

// When /proc does not show this process (a chroot, a pid namespace without a mount). The number of a group is not given
// to another process while the group has members, and kill(2) accepts it, negated, as a pid.
std::vector<Process> ProcessTree::known_without_proc() const
{
  const pid_t session = ::getsid(0);
  if (m_grouping == Grouping::own && ::kill(-m_group, 0) == 0) {
    return {{-m_group, 0, m_group, session, '?'}};
  }
  if (m_main != 0) {
    return {{m_main, ::getpid(), m_group, session, '?'}};
  }
  return {};
}

// A dead child of this process counts until it is reaped, because its own children became children of this process just
// now and may not be in the list. A dead child of another process does not count. Another session is a daemon's unless
// the main process made it: `setsid CMD` does not fork when it leads no group.
std::vector<Process> ProcessTree::alive() const
{
  std::vector<Process> found = own_descendants(m_spared);
  if (found.empty() && !m_childless) {
    return known_without_proc();
  }
  const pid_t self = ::getpid();
  const pid_t session = ::getsid(0);
  std::erase_if(found, [&](const Process& process) {
    const bool daemon = process.session != session && process.session != m_own_session;
    return daemon || (process.is_zombie() && process.parent != self);
  });
  return found;
}

bool ProcessTree::is_empty() const { return m_childless || (m_main == 0 && alive().empty()); }

// Until its leader is reaped the group's number cannot be given to another group.
bool ProcessTree::leads_group() const { return m_grouping == Grouping::own && m_main != 0; }

ProcessTree::Refused ProcessTree::forward(int signal) const
{
  if (leads_group() && send_as_user(-m_group, signal)) {
    return {};
  }
  Refused refused;
  for (const Process& process : alive()) {
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
ProcessTree::Refused ProcessTree::stop(int signal) const
{
  std::vector<Process> all = alive();
  if (leads_group()) {
    send_and_wake(-m_group, signal);
  }
  for (const Process& process : alive()) {
    if (std::ranges::count(all, process.pid, &Process::pid) == 0) {
      all.push_back(process);
    }
  }
  Refused refused;
  for (const Process& process : all) {
    if (!leads_group() || process.group != m_group) {
      send_and_wake(process.pid, signal);
    }
    if (!may_be_signalled(process)) {
      refused.push_back(process.pid);
    }
  }
  return refused;
}

ProcessTree::Refused ProcessTree::kill_all()
{
  for (;;) {
    reap();
    if (m_childless) {
      return {};
    }
    if (leads_group()) {
      ::kill(-m_group, SIGKILL);
    }
    Refused refused;
    std::vector<Process> dying = alive();
    std::erase_if(dying, [&](const Process& process) {
      const bool allowed = send(process.pid, SIGKILL) || process.is_zombie();
      if (!allowed) {
        refused.push_back(process.pid);
      }
      return !allowed;
    });
    if (dying.empty() && (m_main == 0 || std::ranges::count(refused, m_main) > 0)) {
      return refused;
    }
    wait_for_a_death(dying, refused);
  }
}

// Waits for a child, because the kernel reports no other death. A process with another parent is looked at again a
// little later; when its parent dies it becomes a child of this process.
void ProcessTree::wait_for_a_death(const std::vector<Process>& dying, const Refused& refused) const
{
  const pid_t self = ::getpid();
  const auto child = std::ranges::find(dying, self, &Process::parent);
  const pid_t main = std::ranges::count(refused, m_main) > 0 ? 0 : m_main;
  const pid_t awaited = child != dying.end() ? child->pid : main;
  if (awaited != 0) {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(awaited), &info, WEXITED | WNOWAIT);
    return;
  }
  const timespec a_little{0, 2'000'000};
  ::nanosleep(&a_little, nullptr);
}

std::string not_signalled_text(pid_t pid)
{
  const std::string number = std::to_string(pid);
  return "cannot signal process " + number + " (" + printable(command_name(pid)) +
         ") of the job: it runs as another user; end it as root with: kill " + number;
}

}  // namespace rlock
