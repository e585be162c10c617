// SPDX-License-Identifier: Apache-2.0
#include "job/tree.h"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

namespace rlock {
namespace {

void send_and_wake(pid_t target, int signal)
{
  ::kill(target, signal);
  ::kill(target, SIGCONT);
}

// As timeout(1) does it: what is meant to end a process ends one that is stopped, too.
void send_as_user(pid_t target, int signal)
{
  if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT) {
    send_and_wake(target, signal);
    return;
  }
  ::kill(target, signal);
}

}  // namespace

Tree::Tree(pid_t main, Grouping grouping)
    : m_main(main),
      m_own_session(main),
      m_group(grouping == Grouping::own ? main : ::getpgid(main)),
      m_grouping(grouping)
{
}

Tree::Tree(std::vector<pid_t> spared_children) : m_spared(std::move(spared_children)) {}

void Tree::reap()
{
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED);
    if (pid <= 0) {
      m_childless = pid < 0;
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

std::optional<int> Tree::take_pause() { return std::exchange(m_pause, std::nullopt); }

// For want of a /proc that shows us (a chroot, a pid namespace that mounted none). A group's number
// is nobody else's while it has members, and kill(2) takes it for a process.
std::vector<Process> Tree::known_without_proc() const
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

// A dead child of ours counts until it is reaped: those it left have become ours a moment ago, and
// may not have been seen. A dead child of somebody else's is gone. Another session is a daemon's,
// unless the main process made it: in a group that it does not lead `setsid CMD` need not fork.
std::vector<Process> Tree::alive() const
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

bool Tree::is_empty() const { return m_childless || (m_main == 0 && alive().empty()); }

// Only while its leader is not reaped is the group's number certainly nobody else's.
bool Tree::leads_group() const { return m_grouping == Grouping::own && m_main != 0; }

void Tree::forward(int signal) const
{
  if (leads_group()) {
    send_as_user(-m_group, signal);
    return;
  }
  for (const Process& process : alive()) {
    // The main process may have left the group: an interactive shell does.
    if (process.group == m_group || process.pid == m_main) {
      send_as_user(process.pid, signal);
    }
  }
}

// The group at one stroke, so that who is forking meanwhile does not escape; then the others.
void Tree::stop(int signal) const
{
  if (leads_group()) {
    send_and_wake(-m_group, signal);
  }
  for (const Process& process : alive()) {
    if (!leads_group() || process.group != m_group) {
      send_and_wake(process.pid, signal);
    }
  }
}

void Tree::kill_all()
{
  for (;;) {
    reap();
    if (m_childless) {
      return;
    }
    if (leads_group()) {
      ::kill(-m_group, SIGKILL);
    }
    const std::vector<Process> dying = alive();
    if (dying.empty() && m_main == 0) {
      return;
    }
    for (const Process& process : dying) {
      ::kill(process.pid, SIGKILL);
    }
    wait_for_a_death(dying);
  }
}

// Of a child, because the kernel tells us of no other. What is dying below somebody else is looked
// at again a little later; it comes to us if its parent dies too.
void Tree::wait_for_a_death(const std::vector<Process>& dying) const
{
  const pid_t self = ::getpid();
  const auto child = std::ranges::find(dying, self, &Process::parent);
  const pid_t awaited = child != dying.end() ? child->pid : m_main;
  if (awaited != 0) {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(awaited), &info, WEXITED | WNOWAIT);
    return;
  }
  const timespec a_little{0, 2'000'000};
  ::nanosleep(&a_little, nullptr);
}

}  // namespace rlock
