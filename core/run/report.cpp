// SPDX-License-Identifier: Apache-2.0
#include "run/report.h"

#include <sys/wait.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>
#include "base/clock.h"
#include "base/duration.h"
#include "base/result.h"
#include "base/shown_time.h"
#include "base/text.h"
#include "lock/event_log.h"
#include "lock/lease_budget.h"
#include "process/process_tree.h"
#include "process/shell.h"
#include "process/signals.h"

namespace rlock {
namespace {

constexpr std::string_view job_was_stopped = "; the job was stopped";  // the end of the line of a loss

RunOutcome with_code(ExitCode code, Outcome ending, std::string_view event, std::string line)
{
  return {.end = ExitWith{static_cast<int>(code)}, .ending = ending, .line = std::move(line), .event = event};
}

RunOutcome lost_by(const LeaseEvent& event, const LockOutcome& lock, bool forced)
{
  const Outcome ending = forced ? Outcome::forced : Outcome::lost;
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
LeaseEvent loss_at_release(const LockOutcome& lock)
{
  const std::string& trouble = renewal_trouble(lock);
  return trouble.empty() || lock.release->forced ? LeaseEvent(Lost{*lock.release}) : Unconfirmed{trouble};
}

// Whether the release has found out why the lock is gone.
bool is_explained(const NotHeld& at_release)
{
  return at_release.cause == LossCause::released_with_token || at_release.cause == LossCause::server_lost_data;
}

std::optional<RunOutcome> find_loss(const JobOutcome& job)
{
  const LockOutcome& lock = most_certain_loss(job.locks);
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

std::optional<RunOutcome> loss(const JobOutcome& job)
{
  auto lost = find_loss(job);
  const bool was_stopped = job.job && (job.job->why == Stopped::order || job.job->why == Stopped::lease_end);
  if (lost && was_stopped && !job.still_runs) {
    lost->line += job_was_stopped;
  }
  return lost;
}

RunOutcome not_stopped(const JobOutcome& job)
{
  return with_code(ExitCode::time_over, Outcome::failed, "not_stopped",
                   "the job could not be stopped before its lease of " + names_of(job.locks) +
                       " was over: a process of the job still runs");
}

RunOutcome as_job_ended(int wait_status, const JobOutcome& job)
{
  const Outcome unsuccessful = job.was_cancelled ? Outcome::cancelled : Outcome::failed;
  const Outcome ending = wait_status == 0 ? Outcome::succeeded : unsuccessful;
  if (!WIFSIGNALED(wait_status)) {
    return {.end = ExitWith{WEXITSTATUS(wait_status)}, .ending = ending};
  }
  const int signal = WTERMSIG(wait_status);
  const bool as_flock = job.compatibility == Compatibility::flock;
  return {.end = as_flock ? RunEnd{ExitWith{128 + signal}} : RunEnd{DieOf{signal}}, .ending = ending};
}

}  // namespace

RunResult result_of(const RunOutcome& outcome)
{
  return {.exit_code = exit_code_of(outcome.end), .outcome = outcome.ending};
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
    return with_code(ExitCode::os, Outcome::failed, "guardian_failed",
                     "the guardian process lost its connection to rlock: the job was stopped and " +
                         names_of(job.locks) + " released");
  }
  if (!job.job) {
    return with_code(ExitCode::os, Outcome::failed, "guardian_killed",
                     "the guardian process was killed: the job was stopped and " + names_of(job.locks) + " released");
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

namespace {

ErrorCode error_code_of_exec(int error)
{
  if (error == EAGAIN || is_shortage(error)) {
    return ErrorCode::os;
  }
  return error == ENOENT ? ErrorCode::not_found : ErrorCode::not_executable;
}

// 0: the job does not have this lock.
std::uint64_t fence_of(const LockSet& lock_set, const std::string& lock)
{
  const auto found = std::ranges::find_if(lock_set.sessions,
                                          [&](const LockSession& session) { return session.name().text() == lock; });
  return found == lock_set.sessions.end() ? 0 : found->fence();
}

// nullopt: rlock dies of a signal.
std::optional<int> code_of(const RunEnd& end)
{
  const auto* exit = std::get_if<ExitWith>(&end);
  return exit != nullptr ? std::optional(exit->code) : std::nullopt;
}

RunReport logged(const RunContext& context, RunReport report, const LogFields& fields)
{
  context.log.error(report.message, fields);
  return report;
}

// "; noticed at 2026-11-21 13:00:00 +01:00"
std::string noticed_at(std::int64_t lost_at_ms)
{
  const auto timestamp = shown_time(lost_at_ms == 0 ? wall_clock_ms() : lost_at_ms);
  return timestamp ? "; noticed at " + *timestamp : "";
}

}  // namespace

RunReport report_not_executed(const RunRequest& request, const RunContext& context, const NotExecuted& failed)
{
  const ExitWith end = failure(error_code_of_exec(failed.error), request.compatibility);
  return logged(context,
                {.end = end,
                 .outcome = std::string(name_of(Outcome::failed)),
                 .message = "cannot execute " + printable(request.argv.front()) + ": " +
                            std::generic_category().message(failed.error)},
                {.event = "failed", .exit_code = end.code});
}

RunReport report_not_started(const RunContext& context, const LockSession& first_to_expire)
{
  const bool has_time =
      first_to_expire.lease().budget().may_begin(context.clock.now());  // more than all StopTimes need
  if (has_time) {
    constexpr ExitWith end{static_cast<int>(ExitCode::os)};
    return logged(context,
                  {.end = end,
                   .outcome = std::string(name_of(Outcome::failed)),
                   .message = "the job could not be started: its guardian process could not read from rlock"},
                  {.event = "failed", .exit_code = end.code});
  }
  constexpr ExitWith end{static_cast<int>(ExitCode::lost)};
  return logged(context,
                {.end = end,
                 .outcome = std::string(name_of(Outcome::lost)),
                 .message = "the lease of " + printable(first_to_expire.name().text()) +
                            " ran out before the job could start" + give_longer_lease},
                {.event = "lost", .exit_code = end.code});
}

void report_left_behind(const RunRequest& request, const RunContext& context, const LeftBehind& left)
{
  const std::string count = std::to_string(left.count) + (left.count == 1 ? " process" : " processes");
  switch (request.leftovers) {
    case Leftovers::stop:
      context.log.notice("the job left " + count + " behind: stopping (--leftovers wait or leave)",
                         {.event = "left_behind"});
      break;
    case Leftovers::wait:
      context.log.detail("the job left " + count + " behind: waiting", {.event = "left_behind"});
      break;
    case Leftovers::leave:
    case Leftovers::until_pipe_closes: break;
  }
}

void report_not_signalled(const RunContext& context, pid_t pid)
{
  context.log.error(not_signalled_text(pid), {.event = "not_signalled"});
}

void report_killed_after(const RunRequest& request, const RunContext& context, const JobEnd& ended, int signal)
{
  const bool time_was_over = ended.why == Stopped::lease_end || ended.why == Stopped::max_runtime;
  const bool was_killed = ended.killed && WIFSIGNALED(ended.wait_status) && WTERMSIG(ended.wait_status) == SIGKILL;
  if (was_killed && !time_was_over) {
    context.log.notice("the job was killed: it had not ended " + show(request.kill_after) + " after " +
                           signal_name(signal) + " (--kill-after)",
                       {.event = "kill_after"});
  }
}

void report_no_last_resort(const RunContext& context, const LastResortRefused& refused)
{
  std::string when;
  std::string what;
  if (refused.timer != 0) {
    when = "stopped";
    what = "no timer: " + std::generic_category().message(refused.timer) +
           (refused.timer == EAGAIN ? ", see ulimit -i" : "");
  }
  if (refused.pipe != 0) {
    when += when.empty() ? "killed" : " or killed";
    what += (what.empty() ? "no pipe: " : "; no pipe: ") + std::generic_category().message(refused.pipe) +
            (refused.pipe == EMFILE ? ", see ulimit -n" : "");
  }
  context.log.notice(
      "the kernel will not kill the job when rlock and its guardian process are both " + when + ": " + what,
      {.event = "no_last_resort"});
}

void report_not_killed(const RunContext& context, const LeftProcess& process)
{
  context.log.error(not_killed_text(process), {.event = "not_killed"});
}

void report_signal_while_killing(const RunContext& context, int signal)
{
  context.log.error("got " + signal_name(signal) + "; rlock still waits for the end of its job, which was sent KILL",
                    {.event = "signal"});
}

void report_requested(const RunContext& context, const ReleaseRequested& request, const LockName& lock)
{
  context.log.notice(request_text(request.by, lock, "stopping the job"), {.event = "requested", .key = lock.text()});
}

void report_lost_while_killing(const RunContext& context, const LeaseEvent& event, const LockName& lock)
{
  context.log.error(
      loss_text(event, printable(lock.text())) + "; a process of its job still runs, although it was sent KILL",
      {.event = "lost", .key = lock.text()});
}

std::string outcome_line(const RunOutcome& outcome, std::int64_t lost_at_ms)
{
  const bool is_loss = outcome.ending == Outcome::lost || outcome.ending == Outcome::forced;
  const std::size_t stopped = outcome.line.ends_with(job_was_stopped) ? job_was_stopped.size() : 0;
  std::string line = outcome.line;
  return is_loss ? line.insert(line.size() - stopped, noticed_at(lost_at_ms)) : line;
}

RunReport report_of(const RunOutcome& outcome, std::int64_t lost_at_ms)
{
  return {.end = outcome.end,
          .outcome = std::string(name_of(outcome.ending)),
          .message = outcome.line.empty() ? "" : outcome_line(outcome, lost_at_ms)};
}

RunReport report_outcome(const RunContext& context, const LockSet& lock_set, const RunOutcome& outcome,
                         std::int64_t lost_at_ms)
{
  RunReport report = report_of(outcome, lost_at_ms);
  return report.message.empty() ? report
                                : logged(context, std::move(report),
                                         {.event = outcome.event,
                                          .key = outcome.lock,
                                          .fence = fence_of(lock_set, outcome.lock),
                                          .exit_code = code_of(outcome.end)});
}

namespace {

constexpr Millis time_limit{30'000};

// "nightly: failed with exit code 3 after 12m 4s"
std::string message_of(const RunNews& news, const std::vector<std::string>& environment)
{
  if (!news.message.empty()) {
    return news.message;
  }
  const std::string exit =
      news.exit_code && *news.exit_code != 0 ? " with exit code " + std::to_string(*news.exit_code) : "";
  return std::string(environment_value(environment, key_variable)) + ": " + news.outcome + exit + " after " +
         show_roughly(news.duration);
}

// The variables of the job.
std::vector<std::string> environment_after(const RunRequest& request, const LockSet& held)
{
  auto environment =
      job_environment(request.environment, {.held = held.held_locks(), .server = request.server.for_job()});
  unset_variable(environment, held_locks_variable);
  if (const auto inherited = find_variable(request.environment, held_locks_variable)) {
    set_variable(environment, held_locks_variable, std::string(*inherited));
  }
  if (const std::uint64_t fence = held.sessions.front().fence(); fence > 0) {
    set_variable(environment, fence_variable, std::to_string(fence));
  }
  return environment;
}

std::vector<std::string> environment_without_lock(const RunRequest& request)
{
  auto environment = request.environment;
  for (const std::string_view of_outer_lock : {token_variable, lease_variable, shard_variable, fence_variable}) {
    unset_variable(environment, of_outer_lock);
  }
  set_variable(environment, key_variable, request.name().text());
  set_server(environment, request.server.for_job());
  return environment;
}

}  // namespace

RunNews news_of(const RunReport& report, Millis duration)
{
  return {.outcome = report.outcome,
          .exit_code = exit_code_of(report.end),
          .duration = duration,
          .message = report.message,
          .holder = report.holder};
}

void notify(const RunRequest& request, const RunContext& context, const LockSet* held, const RunNews& news,
            Signals* heeded, const std::function<void(const std::string&)>& failed)
{
  if (request.notify.empty() || news.outcome.empty()) {
    return;
  }
  auto environment = held != nullptr ? environment_after(request, *held) : environment_without_lock(request);
  const std::string message = message_of(news, environment);
  const std::string command = held != nullptr ? held->sessions.front().spec().who.command : shown_command(request.argv);
  set_variable(environment, "RLOCK_OUTCOME", news.outcome);
  set_variable(environment, "RLOCK_EXIT_CODE", news.exit_code ? std::to_string(*news.exit_code) : "");
  set_variable(environment, "RLOCK_DURATION_MS", std::to_string(news.duration.count()));
  set_variable(environment, "RLOCK_MESSAGE", without_controls(message));
  set_variable(environment, "RLOCK_STARTED", iso_utc(wall_clock_ms() - news.duration.count()).value_or(""));
  set_variable(environment, "RLOCK_ATTEMPT", std::to_string(held != nullptr ? held->attempt : 1));
  set_variable(environment, "RLOCK_HOST", without_controls(host_name()));
  set_variable(environment, "RLOCK_HOLDER", without_controls(news.holder));
  set_variable(environment, "RLOCK_COMMAND", without_controls(command));
  set_variable(environment, "RLOCK_LABEL", without_controls(request.label));
  const ShellEnd end =
      run_in_shell({.line = request.notify, .environment = std::move(environment), .time_limit = time_limit},
                   context.clock, context.signals, heeded);
  if (end.how != ShellEnd::How::exited || end.number != 0) {
    failed("--notify: the command " + describe(end));
  }
}

}  // namespace rlock
