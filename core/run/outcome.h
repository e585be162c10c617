// SPDX-License-Identifier: Apache-2.0
// Decides how `rlock run` ends, from the end of the job and of its locks. Pure functions.
#pragma once

#include "lease/watchdog.h"
#include "lock/past_run.h"
#include "lock/store.h"
#include "process/job.h"
#include "run/run.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

struct LockOutcome {
  std::string lock;                 // the name of the lock
  std::optional<LeaseEvent> event;  // what happened while the job ran; nullopt: nothing
  std::optional<NotHeld> release;   // the answer to the release; nullopt: the lock was still held
  Instant valid_until{};            // the end of the lease as this host counts it
  std::string trouble = {};         // why renewals failed; empty: no renewal failed
};

struct JobOutcome {
  std::optional<Ended> job;        // nullopt: the guardian was killed
  std::vector<LockOutcome> locks;  // at least one
  bool automatic = true;           // RunRequest::automatic
  Compatibility compatibility = Compatibility::own;
  bool still_runs = false;  // at the end of a fixed lease, KILL has not ended some processes of the job
};

struct RunOutcome {
  RunEnd end;
  Ending ending;
  std::string line = {};        // the message; empty: rlock ends as the job did
  std::string_view event = {};  // of the message, for the JSON log
  std::string lock = {};        // that the message is about; empty: none
};

// What the event log says about the run.
EndOfRun result_of(const RunOutcome& outcome);

// The exit code as a shell sees it: 128 + n when rlock dies of signal n.
int exit_code_of(const RunEnd& end);

// Whether the job ended by itself with status 0.
bool succeeded(const Ended& job);

// "the lock stock was lost: expired or deleted"
std::string loss_text(const LeaseEvent& event, const std::string& lock);

// The exit code when the job did not run.
ExitWith failure(ErrorCode error, Compatibility compatibility);

// The result of a run. A lost lock takes precedence over every other result, because a job under a lost lock did not succeed. If
// several locks were lost, the message names the lock whose loss is proven, or whose lease ended first.
RunOutcome run_outcome(const JobOutcome& job);

}  // namespace rlock
