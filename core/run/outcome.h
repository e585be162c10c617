// SPDX-License-Identifier: Apache-2.0
// How `rlock run` ends, from what is known once the job is over. Pure functions.
#pragma once

#include "lease/watchdog.h"
#include "lock/past_run.h"
#include "lock/store.h"
#include "process/job.h"
#include "run/run.h"

#include <optional>
#include <string>
#include <vector>

namespace rlock {

struct LockOutcome {
  std::string lock;                 // its name
  std::optional<LeaseEvent> event;  // while the job ran
  std::optional<NotHeld> release;   // the answer to the release, when the lock was no longer held
  Instant valid_until{};            // the end of the lease as this host counts it
  std::string trouble = {};         // why renewals failed; empty: they did not
};

struct JobOutcome {
  std::optional<Ended> job;        // missing: the guardian was killed
  std::vector<LockOutcome> locks;  // at least one
  bool automatic = true;           // RunRequest::automatic
  Compatibility compatibility = Compatibility::own;
  bool still_runs = false;  // at the end of a fixed lease processes of the job are left that KILL has not ended
};

struct RunOutcome {
  RunEnd end;
  std::string line;   // the message; empty: rlock ends as the job did
  std::string event;  // of the message, for the JSON log
  std::string lock;   // that the message is about; empty: none
};

// The same for the event log.
EndOfRun result_of(const RunOutcome& outcome);

// 128 + n where rlock dies of signal n, as a shell has it.
int exit_code_of(const RunEnd& end);

// Whether the job ended by itself with status 0.
bool succeeded(const Ended& job);

// "the lock stock was lost: expired or deleted"
std::string loss_text(const LeaseEvent& event, const std::string& lock);

// The exit code when the job did not run.
ExitWith failure(ErrorCode error, Compatibility compatibility);

// A lost lock comes before every other result, because a job under a lost lock did not succeed. Of several locks the
// message names the one whose loss is proven, or whose lease ended first.
RunOutcome run_outcome(const JobOutcome& job);

}  // namespace rlock
