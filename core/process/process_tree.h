// SPDX-License-Identifier: Apache-2.0
// The processes of the job: all descendants of this process but its daemons. A daemon is a child of this process in a session
// that neither this process nor the main process made: it called setsid(2), and its parent ended. A process whose parent is in the
// job belongs to the job, whatever its session (`setsid -w`, script(1), sudo(8) with use_pty). This process must be a child
// subreaper, because otherwise orphans are no descendants any more.
#pragma once

#include "base/clock.h"
#include "process/launch.h"
#include "process/proc.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rlock {

class ProcessTree {
 public:
  ProcessTree(pid_t main, Grouping grouping);  // `main`: the job's main process, a child of this one
  // For orphans of a guardian. `spared_children`: not of the job. `daemons`: sessions that are not of the job; each other session
  // is. `main`: the job's main process; 0: unknown.
  ProcessTree(std::vector<pid_t> spared_children, std::set<pid_t> daemons, pid_t main);

  void reap();  // all children that ended. Never blocks
  [[nodiscard]] std::optional<int> main_status() const { return m_status; }
  std::optional<int> take_pause();  // the signal that stopped the main process since the last call

  [[nodiscard]] std::vector<Process> alive() const;
  [[nodiscard]] bool is_empty() const;
  // The sessions of the daemons. The first stop() or kill_all() decides which they are: later sessions belong to the job.
  [[nodiscard]] std::set<pid_t> daemons() const;

  // Each returns the processes that may not be signalled (EPERM) because they run as another user.
  using Refused = std::vector<pid_t>;
  // To the job's group, and to the main process if it left the group. A signal that asks to end may end a process and leave its
  // children, so these sessions stay sessions of the job.
  Refused forward(int signal);
  Refused stop(int signal);  // to all, and CONT, because a stopped process would not react

  // Sends KILL to all until none is left, `patience` is over, or only processes are left that may not be signalled. Empty: all are
  // dead and reaped. Can be called again.
  [[nodiscard]] std::vector<LeftProcess> kill_all(Millis patience);

 private:
  [[nodiscard]] bool leads_group() const;
  [[nodiscard]] bool is_daemon(pid_t session) const;
  [[nodiscard]] std::vector<LeftProcess> kill_each() const;

  pid_t m_main = 0;         // 0: reaped or unknown
  pid_t m_own_session = 0;  // the session if the main process calls setsid; 0: unknown
  pid_t m_group = 0;        // 0: unknown
  Grouping m_grouping = Grouping::shared;
  std::vector<pid_t> m_spared;
  std::optional<std::set<pid_t>> m_daemons;  // once it is decided
  std::set<pid_t> m_sessions;                // of the job, each time a signal that asks to end was passed on
  bool m_childless = false;
  std::optional<int> m_status;
  std::optional<int> m_pause;
};

// Which of the processes that KILL has not ended are to be named: those that may not be signalled at once, the others when they
// live on for slow_death, and each one again every not_killed_period.
class NotKilledReports {
 public:
  std::vector<LeftProcess> due(const std::vector<LeftProcess>& left, Instant now);

 private:
  std::map<pid_t, Instant> m_next;  // when each process is to be named
  Instant m_minute_over{};
  int m_named = 0;  // in this minute: a process that cannot be ended may start others without end
};

// The message that a process may not be signalled, and what to do.
std::string not_signalled_text(pid_t pid);

// The message that KILL has not ended a process: why, and what to do.
std::string not_killed_text(const LeftProcess& process);

}  // namespace rlock
