// SPDX-License-Identifier: Apache-2.0
// The messages about processes that KILL has not ended, or that rlock may not signal.
#pragma once

#include <sys/types.h>
#include <map>
#include <string>
#include <vector>
#include "base/clock.h"
#include "process/job.h"

namespace rlock {

// Decides which of the processes that KILL has not ended messages must name: at once those that may not be signalled, after
// slow_death the others, and each process again every not_killed_period.
class NotKilledReports {
 public:
  std::vector<LeftProcess> due(const std::vector<LeftProcess>& left, Instant now);

 private:
  std::map<pid_t, Instant> m_next;  // when a message must name each process
  Instant m_minute_over{};
  int m_named = 0;  // messages in this minute: a process that KILL does not end may start others without end
};

// The message that rlock may not signal a process, and what to do.
std::string not_signalled_text(pid_t pid);

// The message that KILL has not ended a process: why, and what to do.
std::string not_killed_text(const LeftProcess& process);

}  // namespace rlock
