// SPDX-License-Identifier: Apache-2.0
// How a run ends, decided from the end of its job and of its locks, and the words for it. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/clock.h"
#include "lease/lease_watch.h"
#include "lock/past_run.h"
#include "lock/store.h"
#include "process/job.h"
#include "run/request.h"

namespace rlock {

struct LockFacts {
  std::string lock;                 // the name of the lock
  std::optional<LeaseEvent> event;  // what happened while the job ran; nullopt: nothing
  std::optional<NotHeld> release;   // the answer to the release; nullopt: the lock was still held when the job was over
  Instant valid_until{};            // the end of the lease as this host counts it
  std::string trouble = {};         // why renewals failed; empty: no renewal failed
};

struct RunFacts {
  std::optional<JobEnd> job;     // nullopt: the guardian was killed
  std::vector<LockFacts> locks;  // at least one
  bool automatic = true;         // RunRequest::automatic
  Compatibility compatibility = Compatibility::own;
  std::optional<Millis> max_runtime = {};  // RunRequest::max_runtime
  bool still_runs = false;                 // at the end of a fixed lease, KILL has not ended some processes of the job
  bool was_cancelled = false;              // a signal from outside asked the job to end (is_cancelled_by)
};

// The end of the line of a loss where rlock stopped the job.
inline constexpr std::string_view job_was_stopped = "; the job was stopped";

struct Verdict {
  RunEnd end;
  Outcome outcome;
  std::string line = {};        // the message; empty: rlock ends as the job did
  std::string_view event = {};  // of the message, for the JSON log
  std::string lock = {};        // that the message is about; empty: none
};

// What the event log says about the run.
RunResult result_of(const Verdict& verdict);

// The exit code as a shell sees it: 128 + n when rlock dies of signal n.
int exit_code_of(const RunEnd& end);
// The same of a status of waitpid(2).
int exit_code_by(int wait_status);

// Whether a signal to rlock cancels the run: TERM, INT and HUP.
bool is_cancelled_by(int signal);
// For people: "3"; "137 KILL", where the code is 128 and the number of a signal.
std::string shown_exit_code(int code);

// Whether the job ended by itself with status 0.
bool succeeded(const JobEnd& job);

// "force-unlock of the lock stock by ann@web1 (pid 71): moving the database; stopping the job". `by`: who asked, and why
// (lock/event_log.h).
std::string request_text(std::string_view by, const LockName& lock, const std::string& consequence);

// "the lock stock was lost: expired or deleted"
std::string loss_text(const LeaseEvent& event, const std::string& lock);

// The error; where the caller named no server (ServerSpec::named_by is "default") and that one cannot be reached, it begins with that,
// and advises to start a private one.
Error with_private_server(Error error, std::string_view named_by);

// The exit code when the job did not run.
ExitWith failure(ErrorCode error, Compatibility compatibility);

// The result of a run. A lost lock takes precedence over every other result, because a job under a lost lock did not succeed. If
// several locks were lost, the message names the lock whose loss is proven, or whose lease ended first.
Verdict verdict_of(const RunFacts& job);

}  // namespace rlock
