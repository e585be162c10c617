// SPDX-License-Identifier: Apache-2.0
// The processes of the job: all descendants of this process that are in its session, or in the session that the main
// process made. A descendant in another session is a daemon and is never touched. This process must be a child
// subreaper, because otherwise orphans are no descendants any more.
#pragma once

#include "process/launch.h"
#include "process/proc.h"

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rlock {

class ProcessTree {
 public:
  ProcessTree(pid_t main, Grouping grouping);  // `main`: the job's main process, a child of this one
  // For orphans of a guardian. `spared_children`: not of the job. `main`: the job's main process; 0: unknown.
  ProcessTree(std::vector<pid_t> spared_children, pid_t main);

  void reap();  // all children that ended. Never blocks
  [[nodiscard]] std::optional<int> main_status() const { return m_status; }
  std::optional<int> take_pause();  // the signal that stopped the main process since the last call

  [[nodiscard]] std::vector<Process> alive() const;
  [[nodiscard]] bool is_empty() const;

  // Each returns the processes that may not be signalled (EPERM) because they run as another user.
  using Refused = std::vector<pid_t>;
  [[nodiscard]] Refused forward(int signal) const;  // to the job's group, and to the main process if it left the group
  [[nodiscard]] Refused stop(int signal) const;     // to all, and CONT, because a stopped process would not react
  [[nodiscard]] Refused kill_all();                 // returns when all others are dead and reaped

 private:
  [[nodiscard]] bool leads_group() const;
  [[nodiscard]] std::vector<Process> known_without_proc() const;
  void wait_for_a_death(const std::vector<Process>& dying, const Refused& refused) const;

  pid_t m_main = 0;         // 0: reaped or unknown
  pid_t m_own_session = 0;  // the session if the main process calls setsid; 0: unknown
  pid_t m_group = 0;        // 0: unknown
  Grouping m_grouping = Grouping::shared;
  std::vector<pid_t> m_spared;
  bool m_childless = false;
  std::optional<int> m_status;
  std::optional<int> m_pause;
};

// The message that a process may not be signalled, and what to do.
std::string not_signalled_text(pid_t pid);

}  // namespace rlock
