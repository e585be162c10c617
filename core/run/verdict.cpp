// SPDX-License-Identifier: Apache-2.0
#include "run/verdict.h"

#include <sys/wait.h>
#include <algorithm>
#include <csignal>
#include <utility>
#include "base/duration.h"
#include "base/text.h"
#include "lock/event_log.h"
#include "process/signals.h"

namespace rlock {
namespace {

Verdict with_code(ExitCode code, Outcome outcome, std::string_view event, std::string line)
{
  return {.end = ExitWith{static_cast<int>(code)}, .outcome = outcome, .line = std::move(line), .event = event};
}

Verdict lost_by(const LeaseEvent& event, const LockFacts& lock, bool forced)
{
  const Outcome outcome = forced ? Outcome::forced : Outcome::lost;
  Verdict verdict = with_code(ExitCode::lost, outcome, name_of(outcome), loss_text(event, printable(lock.lock)));
  verdict.lock = lock.lock;
  return verdict;
}

bool is_proven(const std::optional<LeaseEvent>& event) { return event && !std::holds_alternative<Unconfirmed>(*event); }

// 0: the loss is proven; greater: less certain.
int uncertainty(const LockFacts& lock)
{
  if (is_proven(lock.event)) {
    return 0;
  }
  return lock.release ? 1 : lock.event ? 2 : 3;
}

const LockFacts& most_certain_loss(const std::vector<LockFacts>& locks)
{
  return *std::min_element(locks.begin(), locks.end(), [](const LockFacts& a, const LockFacts& b) {
    return std::pair(uncertainty(a), a.valid_until) < std::pair(uncertainty(b), b.valid_until);
  });
}

std::string names_of(const std::vector<LockFacts>& locks)
{
  return joined(locks, ", ", [](const LockFacts& lock) { return printable(lock.lock); });
}

// Why renewals failed; empty: they did not.
const std::string& renewal_trouble(const LockFacts& lock)
{
  const auto* unconfirmed = lock.event ? std::get_if<Unconfirmed>(&*lock.event) : nullptr;
  return unconfirmed != nullptr ? unconfirmed->why : lock.trouble;
}

// A lease that was not renewed is expired at the release: then the reason is the trouble, not the expiry.
LeaseEvent loss_at_release(const LockFacts& lock)
{
  const std::string& trouble = renewal_trouble(lock);
  return trouble.empty() || lock.release->forced ? LeaseEvent(Lost{*lock.release}) : Unconfirmed{trouble};
}

// Whether the release has found out why the lock is gone.
bool is_explained(const NotHeld& at_release)
{
  return at_release.cause == LossCause::released_with_token || at_release.cause == LossCause::server_lost_data;
}

std::optional<Verdict> find_loss(const RunFacts& job)
{
  const LockFacts& lock = most_certain_loss(job.locks);
  if (is_proven(lock.event)) {
    const auto* const lost = std::get_if<Lost>(&*lock.event);
    const bool forced = lost == nullptr || lost->found.forced;
    const bool is_known_better =
        lost != nullptr && lost->found.is_unexplained() && lock.release && is_explained(*lock.release);
    return lost_by(is_known_better ? LeaseEvent(Lost{*lock.release}) : *lock.event, lock, forced);
  }
  if (lock.release) {
    return lost_by(loss_at_release(lock), lock, lock.release->forced.has_value());
  }
  const bool lease_ended = job.job && job.job->why == Stopped::lease_end;
  if (job.automatic && (lease_ended || lock.event)) {
    return lost_by(lock.event.value_or(Unconfirmed{lock.trouble}), lock, false);
  }
  return std::nullopt;
}

std::optional<Verdict> loss(const RunFacts& job)
{
  auto lost = find_loss(job);
  const bool was_stopped = job.job && (job.job->why == Stopped::order || job.job->why == Stopped::lease_end);
  if (lost && was_stopped && !job.still_runs) {
    lost->line += job_was_stopped;
  }
  return lost;
}

Verdict not_stopped(const RunFacts& job)
{
  return with_code(ExitCode::time_over, Outcome::failed, "not_stopped",
                   "the job could not be stopped before its lease of " + names_of(job.locks) +
                       " was over: a process of the job still runs");
}

Verdict as_job_ended(int wait_status, const RunFacts& job)
{
  const Outcome unsuccessful = job.was_cancelled ? Outcome::cancelled : Outcome::failed;
  const Outcome outcome = wait_status == 0 ? Outcome::succeeded : unsuccessful;
  if (!WIFSIGNALED(wait_status)) {
    return {.end = ExitWith{WEXITSTATUS(wait_status)}, .outcome = outcome};
  }
  const int signal = WTERMSIG(wait_status);
  const bool as_flock = job.compatibility == Compatibility::flock;
  return {.end = as_flock ? RunEnd{ExitWith{128 + signal}} : RunEnd{DieOf{signal}}, .outcome = outcome};
}

}  // namespace

RunResult result_of(const Verdict& verdict)
{
  return {.exit_code = exit_code_of(verdict.end), .outcome = verdict.outcome};
}

int exit_code_of(const RunEnd& end)
{
  const auto* death = std::get_if<DieOf>(&end);
  return death != nullptr ? 128 + death->signal : std::get<ExitWith>(end).code;
}

int exit_code_by(int wait_status)
{
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

bool is_cancelled_by(int signal) { return signal == SIGTERM || signal == SIGINT || signal == SIGHUP; }

std::string shown_exit_code(int code)
{
  const std::string number = std::to_string(code - 128);
  const std::string name = signal_name(code - 128);  // the number, where it has no name
  return std::to_string(code) + (name == number ? "" : " " + name);
}

bool succeeded(const JobEnd& job) { return job.why == Stopped::none && job.wait_status == 0; }

std::string request_text(std::string_view by, const LockName& lock, const std::string& consequence)
{
  const WhoAndWhy request = who_and_why(by);
  const std::string reason = request.reason.empty() ? "" : printable(request.reason) + "; ";
  return "force-unlock of the lock " + printable(lock.text()) + " by " + printable(request.by) + ": " + reason +
         consequence;
}

std::string loss_text(const LeaseEvent& event, const std::string& lock)
{
  if (const auto* requested = std::get_if<ReleaseRequested>(&event)) {
    return "the lock " + lock + " was " + forced_by + printable(requested->by);
  }
  if (const auto* lost = std::get_if<Lost>(&event)) {
    return "the lock " + lock + " was lost: " + text_of(lost->found);
  }
  const std::string& why = std::get<Unconfirmed>(event).why;
  return "the lock " + lock + " was lost: " + (why.empty() ? "it could not be renewed in time" : why);
}

Error with_private_server(Error error, std::string_view named_by)
{
  if (named_by != "default" || !error.text.starts_with("cannot reach ")) {
    return error;
  }
  if (error.nobody_there) {
    error.text.resize(error.text.size() - std::min(error.advice, error.text.size()));
    error.text += "; -S local: starts a private one";
  }
  error.text.insert(0, "no server was named (-S, RLOCK_SERVER, rlock.toml, REDIS_URL), and rlock ");
  return error;
}

ExitWith failure(ErrorCode error, Compatibility compatibility)
{
  const bool no_command = error == ErrorCode::not_found || error == ErrorCode::not_executable;
  const ExitCode code =
      compatibility == Compatibility::flock && no_command ? ExitCode::unavailable : exit_code_of(error);
  return {static_cast<int>(code)};
}

Verdict verdict_of(const RunFacts& job)
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
    return with_code(
        ExitCode::os, Outcome::failed, "guardian_failed",
        "the guardian process lost its connection to rlock: the job of " + names_of(job.locks) + " was stopped");
  }
  if (!job.job) {
    return with_code(ExitCode::os, Outcome::failed, "guardian_killed",
                     "the guardian process was killed: the job of " + names_of(job.locks) + " was stopped");
  }
  if (job.job->why == Stopped::lease_end) {
    return with_code(ExitCode::time_over, Outcome::timed_out, "time_over",
                     "the job was stopped: its lease of " + names_of(job.locks) + " was over");
  }
  if (job.job->why == Stopped::max_runtime) {
    return with_code(ExitCode::time_over, Outcome::timed_out, "time_over",
                     "the job of " + names_of(job.locks) + " was stopped: its --max-runtime" +
                         (job.max_runtime ? " of " + show(*job.max_runtime) : "") + " was over");
  }
  return as_job_ended(job.job->wait_status, job);
}

}  // namespace rlock
