// SPDX-License-Identifier: Apache-2.0
#include "run/outcome.h"

#include "base/text.h"

#include <algorithm>
#include <utility>

#include <sys/wait.h>

namespace rlock {
namespace {

RunOutcome with_code(ExitCode code, Ending ending, std::string_view event, std::string line)
{
  return {.end = ExitWith{static_cast<int>(code)}, .ending = ending, .line = std::move(line), .event = event};
}

RunOutcome lost_by(const LeaseEvent& event, const LockOutcome& lock, bool forced)
{
  const Ending ending = forced ? Ending::forced : Ending::lost;
  RunOutcome outcome = with_code(ExitCode::lost, ending, name_of(ending), loss_text(event, printable(lock.lock)));
  outcome.lock = lock.lock;
  return outcome;
}

bool is_proven(const std::optional<LeaseEvent>& event) { return event && !std::holds_alternative<Unconfirmed>(*event); }

// 0: the loss is proven; greater: less certain.
int uncertainty(const LockOutcome& lock)
{
  if (is_proven(lock.event)) {
    return 0;
  }
  return lock.release ? 1 : lock.event ? 2 : 3;
}

const LockOutcome& most_certain_loss(const std::vector<LockOutcome>& locks)
{
  return *std::min_element(locks.begin(), locks.end(), [](const LockOutcome& a, const LockOutcome& b) {
    return std::pair(uncertainty(a), a.valid_until) < std::pair(uncertainty(b), b.valid_until);
  });
}

std::string names_of(const std::vector<LockOutcome>& locks)
{
  std::string names;
  for (const LockOutcome& lock : locks) {
    names += (names.empty() ? "" : ", ") + printable(lock.lock);
  }
  return names;
}

// Why renewals failed; empty: they did not.
const std::string& renewal_trouble(const LockOutcome& lock)
{
  const auto* unconfirmed = lock.event ? std::get_if<Unconfirmed>(&*lock.event) : nullptr;
  return unconfirmed != nullptr ? unconfirmed->why : lock.trouble;
}

// A lease that was not renewed is expired at the release: then the reason is the trouble, not the expiry.
std::string reason_of_loss(const LockOutcome& lock, const NotHeld& at_release)
{
  if (at_release.forced) {
    return forced_by + printable(at_release.forced->by);
  }
  const std::string& trouble = renewal_trouble(lock);
  return trouble.empty() ? at_release.what : trouble;
}

std::optional<RunOutcome> loss(const JobOutcome& job)
{
  const LockOutcome& lock = most_certain_loss(job.locks);
  if (is_proven(lock.event)) {
    const auto* const lost = std::get_if<Lost>(&*lock.event);
    return lost_by(*lock.event, lock, lost == nullptr || lost->forced);
  }
  if (lock.release) {
    return lost_by(Lost{reason_of_loss(lock, *lock.release)}, lock, lock.release->forced.has_value());
  }
  const bool lease_ended = job.job && job.job->why == Stopped::lease_end;
  if (job.automatic && (lease_ended || lock.event)) {
    return lost_by(lock.event.value_or(Unconfirmed{lock.trouble}), lock, false);
  }
  return std::nullopt;
}

RunOutcome not_stopped(const JobOutcome& job)
{
  return with_code(ExitCode::time_over, Ending::failed, "not_stopped",
                   "the job could not be stopped before its lease of " + names_of(job.locks) +
                       " was over: a process of the job still runs");
}

RunOutcome as_job_ended(int wait_status, Compatibility compatibility)
{
  const Ending ending = wait_status == 0 ? Ending::succeeded : Ending::failed;
  if (!WIFSIGNALED(wait_status)) {
    return {.end = ExitWith{WEXITSTATUS(wait_status)}, .ending = ending};
  }
  const int signal = WTERMSIG(wait_status);
  const bool as_flock = compatibility == Compatibility::flock;
  return {.end = as_flock ? RunEnd{ExitWith{128 + signal}} : RunEnd{DieOf{signal}}, .ending = ending};
}

}  // namespace

EndOfRun result_of(const RunOutcome& outcome)
{
  return {.exit_code = exit_code_of(outcome.end), .outcome = outcome.ending};
}

int exit_code_of(const RunEnd& end)
{
  const auto* death = std::get_if<DieOf>(&end);
  return death != nullptr ? 128 + death->signal : std::get<ExitWith>(end).code;
}

bool succeeded(const Ended& job) { return job.why == Stopped::none && job.wait_status == 0; }

std::string loss_text(const LeaseEvent& event, const std::string& lock)
{
  if (const auto* requested = std::get_if<ReleaseRequested>(&event)) {
    return "the lock " + lock + " was " + forced_by + printable(requested->by);
  }
  if (const auto* lost = std::get_if<Lost>(&event)) {
    return "the lock " + lock + " was lost: " + lost->why;
  }
  const std::string& why = std::get<Unconfirmed>(event).why;
  return "the lock " + lock + " was lost: " + (why.empty() ? "it could not be renewed in time" : why);
}

ExitWith failure(ErrorCode error, Compatibility compatibility)
{
  const bool no_command = error == ErrorCode::not_found || error == ErrorCode::not_executable;
  const ExitCode code =
      compatibility == Compatibility::flock && no_command ? ExitCode::unavailable : exit_code_of(error);
  return {static_cast<int>(code)};
}

RunOutcome run_outcome(const JobOutcome& job)
{
  if (auto lost = loss(job)) {
    return *std::move(lost);
  }
  if (job.still_runs) {
    return not_stopped(job);
  }
  // Although this process, the runner, lives.
  const bool guardian_failed = job.job && job.job->why == Stopped::runner_gone;
  if (guardian_failed) {
    return with_code(ExitCode::os, Ending::failed, "guardian_failed",
                     "the guardian process lost its connection to rlock: the job was stopped and " +
                         names_of(job.locks) + " released");
  }
  if (!job.job) {
    return with_code(ExitCode::os, Ending::failed, "guardian_killed",
                     "the guardian process was killed: the job was stopped and " + names_of(job.locks) + " released");
  }
  if (job.job->why == Stopped::lease_end) {
    return with_code(ExitCode::time_over, Ending::timed_out, "time_over",
                     "the job was stopped: its lease of " + names_of(job.locks) + " was over");
  }
  if (job.job->why == Stopped::max_runtime) {
    return with_code(ExitCode::time_over, Ending::timed_out, "time_over",
                     "the job was stopped: its --max-runtime was over");
  }
  return as_job_ended(job.job->wait_status, job.compatibility);
}

}  // namespace rlock
