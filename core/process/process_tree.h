// SPDX-License-Identifier: Apache-2.0
// The job's processes: all that descends from us and is in our session, or in the one that the
// main process made. What else called setsid(2) is a daemon and is never touched. Whoever uses this
// must be a child subreaper, else orphans get away.
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
  ProcessTree(pid_t main, Grouping grouping);  // `main`: our child, the job's first process
  // Orphans; the children are not of the job. `main`: what the job's first process was; 0: not known.
  ProcessTree(std::vector<pid_t> spared_children, pid_t main);

  void reap();  // all that died. Never blocks
  [[nodiscard]] std::optional<int> main_status() const { return m_status; }
  std::optional<int> take_pause();  // the signal that stopped the main process since the last call

  [[nodiscard]] std::vector<Process> alive() const;
  [[nodiscard]] bool is_empty() const;

  // Each returns the processes that may not be signalled (EPERM), because they run as another user.
  using Refused = std::vector<pid_t>;
  [[nodiscard]] Refused forward(int signal) const;  // to the job's group, and to the main process if it left that
  [[nodiscard]] Refused stop(int signal) const;     // to all of it, and CONT: what is stopped would not act
  [[nodiscard]] Refused kill_all();                 // returns when all others are dead and reaped

 private:
  [[nodiscard]] bool leads_group() const;
  [[nodiscard]] std::vector<Process> known_without_proc() const;
  void wait_for_a_death(const std::vector<Process>& dying, const Refused& refused) const;

  pid_t m_main = 0;         // 0: reaped, or never known
  pid_t m_own_session = 0;  // what the main process makes if it calls setsid; 0: not known
  pid_t m_group = 0;        // 0: not known
  Grouping m_grouping = Grouping::shared;
  std::vector<pid_t> m_spared;
  bool m_childless = false;
  std::optional<int> m_status;
  std::optional<int> m_pause;
};

// For people: which process it is that may not be signalled, and what to do.
std::string not_signalled_text(pid_t pid);

}  // namespace rlock
