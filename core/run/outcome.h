// SPDX-License-Identifier: Apache-2.0
// How rlock ends, from what is known once the job is over: a pure decision.
#pragma once

#include "lease/watchdog.h"
#include "lock/store.h"
#include "process/job.h"
#include "run/run.h"

#include <optional>
#include <string>
#include <vector>

namespace rlock {

struct LockOutcome {
  std::string lock;                       // its name
  std::optional<LeaseEvent> lease_event;  // of the watchdog
  std::optional<NotHeld> release;         // what release found when the lock was not ours any more
  Instant valid_until{};                  // where its lease ended, if nothing else is known
  std::string trouble = {};               // why it was not renewed, if there is no lease_event yet
};

struct JobOutcome {
  std::optional<Ended> job;        // missing: the guardian was killed
  std::vector<LockOutcome> locks;  // one at least
  bool automatic = true;
  Compatibility compatibility = Compatibility::own;
  bool still_runs = false;  // processes of the job, which may not be signalled
};

struct RunOutcome {
  RunEnd end;
  std::string line;   // why, when it is not the job's own end; empty then
  std::string event;  // as the log has it
  std::string lock;   // the one that it is about, if any
};

// It ended by itself, and well.
bool succeeded(const Ended& job);

// "the lock stock was lost: expired or deleted"
std::string loss_text(const LeaseEvent& lease_event, const std::string& lock);

// Of a job that did not run.
ExitWith failure(ErrorCode fault, Compatibility compatibility);

// Losing counts most: a job that ended well under a lock that was lost did not end well. Of several locks the line names
// the one that was surely lost, or whose lease ended first.
RunOutcome run_outcome(const JobOutcome& after);

}  // namespace rlock
