// SPDX-License-Identifier: Apache-2.0
#include "run/report.h"

#include <sys/wait.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>
#include "base/duration.h"
#include "base/shown_time.h"
#include "base/text.h"
#include "process/not_killed.h"
#include "process/signals.h"

namespace rlock {
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

std::string line_of(const Verdict& verdict, std::int64_t lost_at_ms)
{
  const bool is_loss = verdict.outcome == Outcome::lost || verdict.outcome == Outcome::forced;
  const std::size_t stopped = verdict.line.ends_with(job_was_stopped) ? job_was_stopped.size() : 0;
  std::string line = verdict.line;
  return is_loss ? line.insert(line.size() - stopped, noticed_at(lost_at_ms)) : line;
}

RunReport report_of(const Verdict& verdict, std::int64_t lost_at_ms)
{
  return {.end = verdict.end,
          .outcome = std::string(name_of(verdict.outcome)),
          .message = verdict.line.empty() ? "" : line_of(verdict, lost_at_ms)};
}

RunReport report_verdict(const RunContext& context, const LockSet& lock_set, const Verdict& verdict,
                         std::int64_t lost_at_ms)
{
  RunReport report = report_of(verdict, lost_at_ms);
  return report.message.empty() ? report
                                : logged(context, std::move(report),
                                         {.event = verdict.event,
                                          .key = verdict.lock,
                                          .fence = fence_of(lock_set, verdict.lock),
                                          .exit_code = code_of(verdict.end)});
}

}  // namespace rlock
