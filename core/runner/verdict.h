// SPDX-License-Identifier: Apache-2.0
// How rlock ends, from what is known once the job is over: a pure decision.
#pragma once

#include "job/job.h"
#include "lock/store.h"
#include "runner/run.h"
#include "watch/watchdog.h"

#include <optional>
#include <string>

namespace rlock {

struct Aftermath {
  std::optional<Ended> job;        // missing: the guardian was killed
  std::optional<Verdict> verdict;  // of the watchdog
  std::optional<NotOurs> release;  // what release found when the lock was not ours any more
  bool automatic = true;
};

struct Ending {
  RunEnd end;
  std::string line;  // why, when it is not the job's own end; empty then
};

// It ended by itself, and well.
bool succeeded(const Ended& job);

// Losing counts most: a job that ended well under a lock that was lost did not end well.
Ending ending(const Aftermath& after, const std::string& lock);

}  // namespace rlock
