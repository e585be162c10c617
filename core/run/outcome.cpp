// SPDX-License-Identifier: Apache-2.0
#include "run/outcome.h"

#include "base/text.h"

#include <algorithm>
#include <utility>

#include <sys/wait.h>

namespace rlock {
namespace {

RunOutcome with_code(ExitCode code, std::string event, std::string line)
{
  return {.end = ExitWith{static_cast<int>(code)}, .line = std::move(line), .event = std::move(event), .lock = {}};
}

RunOutcome lost_for(const LeaseEvent& lease_event, const LockOutcome& fate, bool forced)
{
  RunOutcome end = with_code(ExitCode::lost, forced ? "forced" : "lost", loss_text(lease_event, printable(fate.lock)));
  end.lock = fate.lock;
  return end;
}

// How surely it was lost: the less the surer.
int doubt(const LockOutcome& fate)
{
  if (fate.lease_event && !std::holds_alternative<Unconfirmed>(*fate.lease_event)) {
    return 0;
  }
  return fate.release ? 1 : fate.lease_event ? 2 : 3;
}

const LockOutcome& worst(const std::vector<LockOutcome>& fates)
{
  return *std::min_element(fates.begin(), fates.end(), [](const LockOutcome& a, const LockOutcome& b) {
    return std::pair(doubt(a), a.valid_until) < std::pair(doubt(b), b.valid_until);
  });
}

std::string names_of(const std::vector<LockOutcome>& fates)
{
  std::string names;
  for (const LockOutcome& fate : fates) {
    names += (names.empty() ? "" : ", ") + printable(fate.lock);
  }
  return names;
}

// Why renewals failed; empty: they did not.
const std::string& trouble_of(const LockOutcome& fate)
{
  const auto* unsure = fate.lease_event ? std::get_if<Unconfirmed>(&*fate.lease_event) : nullptr;
  return unsure != nullptr ? unsure->why : fate.trouble;
}

// A lease that was not renewed has expired by the time of the release: that it is gone then is no reason.
std::string reason_for(const LockOutcome& fate, const NotHeld& found)
{
  if (found.forced) {
    return "force-unlocked by " + printable(found.forced->by);
  }
  const std::string& trouble = trouble_of(fate);
  return trouble.empty() ? found.what : trouble;
}

std::optional<RunOutcome> lost(const JobOutcome& after)
{
  const LockOutcome& fate = worst(after.locks);
  if (fate.lease_event && !std::holds_alternative<Unconfirmed>(*fate.lease_event)) {
    return lost_for(*fate.lease_event, fate, std::holds_alternative<ReleaseRequested>(*fate.lease_event));
  }
  if (fate.release) {
    return lost_for(Lost{reason_for(fate, *fate.release)}, fate, fate.release->forced.has_value());
  }
  const bool over = after.job && after.job->why == Stopped::lease_end;
  if (after.automatic && (over || fate.lease_event)) {
    return lost_for(fate.lease_event.value_or(Unconfirmed{fate.trouble}), fate, false);
  }
  return std::nullopt;
}

RunOutcome not_stopped(const JobOutcome& after)
{
  const bool time_over = after.job && (after.job->why == Stopped::lease_end || after.job->why == Stopped::max_runtime);
  return with_code(time_over ? ExitCode::time_over : ExitCode::os, "not_stopped",
                   "the job could not be stopped: a process that runs as another user is left; " +
                       names_of(after.locks) + " stays locked until the ttl is over");
}

}  // namespace

bool succeeded(const Ended& job) { return job.why == Stopped::none && job.wait_status == 0; }

std::string loss_text(const LeaseEvent& lease_event, const std::string& lock)
{
  if (const auto* wanted = std::get_if<ReleaseRequested>(&lease_event)) {
    return "the lock " + lock + " was force-unlocked by " + printable(wanted->by);
  }
  if (const auto* gone = std::get_if<Lost>(&lease_event)) {
    return "the lock " + lock + " was lost: " + gone->why;
  }
  const std::string& why = std::get<Unconfirmed>(lease_event).why;
  return "the lock " + lock + " was lost: " + (why.empty() ? "it could not be renewed in time" : why);
}

ExitWith failure(ErrorCode fault, Compatibility compatibility)
{
  const bool no_command = fault == ErrorCode::not_found || fault == ErrorCode::not_executable;
  const ExitCode code =
      compatibility == Compatibility::flock && no_command ? ExitCode::unavailable : exit_code_of(fault);
  return {static_cast<int>(code)};
}

RunOutcome run_outcome(const JobOutcome& after)
{
  if (auto end = lost(after)) {
    return *std::move(end);
  }
  if (after.still_runs) {
    return not_stopped(after);
  }
  if (!after.job) {
    return with_code(ExitCode::os, "guardian_killed",
                     "the guardian process was killed: the job was stopped and " + names_of(after.locks) + " released");
  }
  if (after.job->why == Stopped::lease_end) {
    return with_code(ExitCode::time_over, "time_over",
                     "the job was stopped: its lease of " + names_of(after.locks) + " was over");
  }
  if (after.job->why == Stopped::max_runtime) {
    return with_code(ExitCode::time_over, "time_over", "the job was stopped: its --max-runtime was over");
  }
  const int status = after.job->wait_status;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const bool as_flock = after.compatibility == Compatibility::flock;
    return {
        .end = as_flock ? RunEnd{ExitWith{128 + signal}} : RunEnd{DieOf{signal}}, .line = {}, .event = {}, .lock = {}};
  }
  return {.end = ExitWith{WEXITSTATUS(status)}, .line = {}, .event = {}, .lock = {}};
}

}  // namespace rlock
