// SPDX-License-Identifier: Apache-2.0
// The processes of the job: all descendants of this process but its daemons. A daemon is a child of this process in a session
// that neither this process nor the main process made: the daemon called setsid(2), and its parent ended. A process whose parent
// is in the job belongs to the job, whatever its session (`setsid -w`, script(1), sudo(8) with use_pty). This process must be a
// child subreaper, because otherwise orphans are no longer descendants.
#pragma once

#include <sys/types.h>
#include <optional>
#include <set>
#include <vector>
#include "base/clock.h"
#include "process/launch.h"
#include "process/proc.h"

namespace rlock {

// Sends a signal, and CONT, because a stopped process would not react. False: the process may not be signalled (EPERM).
bool send_and_wake(pid_t target, int signal);
bool send_signal(pid_t target,
                 int signal);  // the same without CONT. For a group: false: none of its processes may be signalled

// Whether the process is one of rlock, which adopts orphans. So a child of it in a session of its own is a daemon of a nested job.
bool adopts_orphans(pid_t pid);

// Waits until one of the processes has died, as far as the kernel tells, but not for long, because processes may fork meanwhile.
void wait_for_a_death(const std::vector<LeftProcess>& dying, Instant deadline);

class ProcessTree {
 public:
  ProcessTree(pid_t main, Grouping grouping);  // `main`: the job's main process, a child of this process
  // A tree of the orphans of a guardian. `spared_children`: children that do not belong to the job. `daemons`: the sessions that
  // do not belong to the job. `main`: the job's main process; 0: unknown.
  ProcessTree(std::vector<pid_t> spared_children, std::set<pid_t> daemons, pid_t main);

  void reap();  // reaps all children that have ended; never blocks
  [[nodiscard]] std::optional<int> main_status() const { return m_status; }
  std::optional<int> take_pause();  // the signal that stopped the main process since the last call

  [[nodiscard]] std::vector<ProcessInfo> alive() const;
  [[nodiscard]] bool is_empty() const;
  // The sessions of the daemons. The first stop() or kill_all() decides which sessions are daemons: later sessions belong to the
  // job.
  [[nodiscard]] std::set<pid_t> daemons() const;

  // Each returns the processes that may not be signalled (EPERM) because they run as another user.
  using Refused = std::vector<pid_t>;
  // Sends a signal to the job's group, and to the main process if it left the group. A signal that asks to end may end a process
  // and leave its children, so the present sessions stay sessions of the job.
  Refused forward(int signal);
  Refused stop(int signal);  // sends a signal to all, and CONT, because a stopped process would not react

  // Sends KILL to all processes until none is left, `time_limit` is over, or only processes are left that may not be signalled.
  // Empty: all are dead and reaped. May be called again.
  [[nodiscard]] std::vector<LeftProcess> kill_all(Millis time_limit);

 private:
  [[nodiscard]] bool leads_group() const;
  [[nodiscard]] bool is_daemon(pid_t session) const;
  [[nodiscard]] std::vector<LeftProcess> kill_each() const;

  pid_t m_main = 0;         // 0: reaped or unknown
  pid_t m_own_session = 0;  // the session that the main process would make by setsid(2); 0: unknown
  pid_t m_group = 0;        // 0: unknown
  Grouping m_grouping = Grouping::shared;
  std::vector<pid_t> m_spared;
  std::optional<std::set<pid_t>> m_daemons;  // nullopt: not decided yet
  std::set<pid_t> m_sessions;                // the sessions of the job whenever a signal that asks to end was passed on
  bool m_childless = false;
  std::optional<int> m_status;
  std::optional<int> m_pause;
};

}  // namespace rlock
