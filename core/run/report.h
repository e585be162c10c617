// SPDX-License-Identifier: Apache-2.0
// What a run says of its end: the outcome (pure functions), the messages about the job, and --notify.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "lease/watchdog.h"
#include "lock/past_run.h"
#include "lock/store.h"
#include "process/job.h"
#include "process/signals.h"
#include "run/environment.h"
#include "run/lock_set.h"
#include "run/run.h"

namespace rlock {

struct LockOutcome {
  std::string lock;                 // the name of the lock
  std::optional<LeaseEvent> event;  // what happened while the job ran; nullopt: nothing
  std::optional<NotHeld> release;   // the answer to the release; nullopt: the lock was still held when the job was over
  Instant valid_until{};            // the end of the lease as this host counts it
  std::string trouble = {};         // why renewals failed; empty: no renewal failed
};

struct JobOutcome {
  std::optional<JobEnd> job;       // nullopt: the guardian was killed
  std::vector<LockOutcome> locks;  // at least one
  bool automatic = true;           // RunRequest::automatic
  Compatibility compatibility = Compatibility::own;
  std::optional<Millis> max_runtime = {};  // RunRequest::max_runtime
  bool still_runs = false;                 // at the end of a fixed lease, KILL has not ended some processes of the job
  bool was_cancelled = false;              // a signal from outside asked the job to end (is_cancelled_by)
};

struct RunOutcome {
  RunEnd end;
  Outcome ending;
  std::string line = {};        // the message; empty: rlock ends as the job did
  std::string_view event = {};  // of the message, for the JSON log
  std::string lock = {};        // that the message is about; empty: none
};

// What the event log says about the run.
RunResult result_of(const RunOutcome& outcome);

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
RunOutcome run_outcome(const JobOutcome& job);

// The messages of `rlock run` about its job, and how rlock ends after each.

// The job never ran.
RunReport report_not_executed(const RunRequest& request, const RunContext& context, const NotExecuted& failed);
RunReport report_not_started(const RunContext& context, const LockSession& first_to_expire);

void report_left_behind(const RunRequest& request, const RunContext& context, const LeftBehind& left);
void report_not_signalled(const RunContext& context, pid_t pid);
// Logs that KILL was needed after `signal`, which rlock had passed on; logs nothing if the job ended by itself.
void report_killed_after(const RunRequest& request, const RunContext& context, const JobEnd& ended, int signal);
void report_no_last_resort(const RunContext& context, const LastResortRefused& refused);
// A client asks for a lock of the job, which is stopped now.
void report_requested(const RunContext& context, const ReleaseRequested& request, const LockName& lock);

// The following serve while processes live that KILL has not ended.
void report_not_killed(const RunContext& context, const LeftProcess& process);
void report_signal_while_killing(const RunContext& context, int signal);
void report_lost_while_killing(const RunContext& context, const LeaseEvent& event, const LockName& lock);

// The message of the outcome, with the time of the loss of a lock, which comes before the end of the job. `lost_at_ms`: by the wall
// clock; 0: now.
std::string outcome_line(const RunOutcome& outcome, std::int64_t lost_at_ms);

// What became of the run. Logs nothing.
RunReport report_of(const RunOutcome& outcome, std::int64_t lost_at_ms);

// Logs the outcome unless rlock ends as its job did.
RunReport report_outcome(const RunContext& context, const LockSet& lock_set, const RunOutcome& outcome,
                         std::int64_t lost_at_ms);

// --notify: a command of the user gets the result of a run.

struct RunNews {
  std::string outcome =
      {};  // succeeded failed cancelled lost forced timed_out busy replaced unreachable; empty: nothing to tell
  std::optional<int> exit_code = std::nullopt;  // nullopt: unknown; the variable is empty then
  Millis duration{0};                           // until now: how long the job ran, or how long the run waited
  std::string message = {};                     // empty: made of the other members
  std::string holder = {};                      // RunReport::holder
};
RunNews news_of(const RunReport& report, Millis duration);

// Runs RunRequest::notify by /bin/sh, for `time_limit` in report.cpp at most, if there is a command and something to tell. Its
// environment is that of the job, but RLOCK_HELD is as this process inherited it, because the locks are released. `held`: the locks
// that the run had; nullptr: none. `heeded`: see run_in_shell. Calls `failed` with a line when the command fails. Threads: call this
// while the process has one thread.
void notify(const RunRequest& request, const RunContext& context, const LockSet* held, const RunNews& news,
            Signals* heeded, const std::function<void(const std::string&)>& failed);

}  // namespace rlock
