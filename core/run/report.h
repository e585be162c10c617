// SPDX-License-Identifier: Apache-2.0
// The messages of `rlock run` about its job, and how rlock ends after each.
#pragma once

#include <cstdint>
#include <string>
#include "process/job.h"
#include "run/lock_set.h"
#include "run/verdict.h"

namespace rlock {

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
std::string line_of(const Verdict& verdict, std::int64_t lost_at_ms);

// What became of the run. Logs nothing.
RunReport report_of(const Verdict& verdict, std::int64_t lost_at_ms);

// Logs the outcome unless rlock ends as its job did.
RunReport report_verdict(const RunContext& context, const LockSet& lock_set, const Verdict& verdict,
                         std::int64_t lost_at_ms);

}  // namespace rlock
