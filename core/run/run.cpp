// SPDX-License-Identifier: Apache-2.0
#include "run/run.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include "base/duration.h"
#include "base/text.h"
#include "lock/reach_server.h"
#include "process/launch.h"
#include "run/acquire_all.h"
#include "run/attempts.h"
#include "run/environment.h"
#include "run/notify.h"
#include "run/release.h"
#include "run/supervision.h"
#include "run/verdict.h"
#include "run/wait_message.h"

namespace rlock {
namespace {

constexpr Millis least_wait_to_retry{30'000};  // a store may keep the lock of a failed attempt longer than asked

// Whether a job calls, which did not get a password.
bool lacks_password_of_outer(const RunRequest& request)
{
  const auto has_password = [](const Endpoint& each) { return !each.password.empty(); };
  return request.server.named_by == server_variable &&
         !environment_value(request.environment, token_variable).empty() &&
         std::ranges::none_of(request.server.endpoints, has_password);
}

RunReport fail(const RunRequest& request, const RunContext& context, const Error& found)
{
  Error error = with_private_server(found, request.server.named_by);
  error.text = with_login(error.text, request.server.login);
  if (error.code == ErrorCode::refused && lacks_password_of_outer(request)) {
    error.text += no_password_in_job;
  }
  const ExitWith end = failure(error.code, request.compatibility);
  context.log.error(error.text, {.event = "failed", .exit_code = end.code});
  const bool is_unreachable = exit_code_of(error.code) == ExitCode::unavailable;
  return {.end = end, .outcome = is_unreachable ? "unreachable" : "failed", .message = error.text};
}

RunReport end_by_signal(const RunContext& context)
{
  const auto arrived = context.signals.take();
  return {.end = DieOf{arrived ? arrived->number : SIGTERM}};
}

RunReport busy(const RunRequest& request, const RunContext& context, const LockBusy& lock)
{
  const RunEnd end = report_busy(request, lock, context.log);
  if (lock.last.replaced) {
    return {.end = end,
            .outcome = "replaced",
            .holder = newer_run(*lock.last.replaced),
            .message = busy_line(request, lock)};
  }
  return {.end = end,
          .outcome = "busy",
          .holder = lock.last.holder ? describe(*lock.last.holder) : "",
          .message = busy_line(request, lock)};
}

// One call of run(), which may take several attempts to acquire.
class Run {
 public:
  Run(const RunRequest& request, const RunContext& context, std::string path)
      : m_request(request),
        m_context(context),
        m_path(std::move(path)),
        m_policy(wait_policy(request.wait, request.server.timeout, context.clock, request.wait_server))
  {
  }

  RunEnd run()
  {
    std::optional<RunReport> report;
    while (!report) {
      report = try_once();
      if (report && report->retry_in) {
        report = pause_before_retry(*report);
      }
    }
    tell(*report);
    return report->end;
  }

 private:
  // nullopt: the job has not run, no lock is held, and another attempt is due.
  std::optional<RunReport> try_once()
  {
    auto owned = std::make_unique<LockSet>(m_request, m_context, m_path);
    const auto result = acquire_all(m_request, m_context, m_policy, m_context.signals.stop(), *owned);
    if (!result) {
      return failed(result.error());
    }
    if (const auto* acquired = std::get_if<AllAcquired>(&*result)) {
      auto shared = take_turn(*owned, acquired->waited);
      return shared ? shared : run_under_locks(std::move(owned));
    }
    if (const auto* lock_busy = std::get_if<LockBusy>(&*result)) {
      return m_attempt > 0 ? RunReport{.end = m_failed} : busy(m_request, m_context, *lock_busy);
    }
    if (const auto* done = std::get_if<AlreadyDone>(&*result)) {
      tell_done(owned->sessions.front(), *done);
      return RunReport{.end = ExitWith{static_cast<int>(ExitCode::ok)}};
    }
    if (const auto* retry = std::get_if<RetryNeeded>(&*result)) {
      return begin_again(*retry);
    }
    return end_by_signal(m_context);
  }

  // The runs under the lock, for a decision or a line of this process.
  Result<std::vector<PastRun>> past_runs(LockSession& session) const
  {
    const Millis within = std::min(m_request.server.timeout, m_request.ttl / 6);
    return session.past_runs({.clock = m_context.clock,
                              .timeout = within,
                              .whole = {.deadline = m_context.clock.now() + within, .stop = m_context.signals.stop()}});
  }

  // Only the history knows who it was, so it is asked for this line alone.
  void tell_done(LockSession& session, const AlreadyDone& done) const
  {
    if (m_context.log.verbosity() != Verbosity::verbose) {
      return;
    }
    const auto runs = past_runs(session);
    const std::string& name = m_request.name().text();
    m_context.log.detail(done_text(printable(name), done.ago, runs ? *runs : std::vector<PastRun>{}, wall_clock_ms()) +
                             until_next(session.spec().period, wall_clock_ms()),
                         {.event = "already_done", .key = name});
  }

  // Of rlock once: finds out which attempt it is. Returns the end of rlock when the job need not run, because its last attempt
  // failed while this process waited; the lock is released then.
  std::optional<RunReport> take_turn(LockSet& owned, bool waited)
  {
    owned.attempt = m_attempt + 1;
    if (!m_request.once || m_request.again || !(waited || m_attempt > 0)) {
      return std::nullopt;
    }
    LockSession& session = owned.sessions.front();
    const auto runs = past_runs(session);
    if (!runs) {
      m_context.log.detail(runs.error().text);
      return std::nullopt;
    }
    const Turn turn = turn_of(*runs, arrival(session), m_request.attempts, m_attempt);
    if (const auto* attempt = std::get_if<RunAttempt>(&turn)) {
      owned.attempt = attempt->number;
      return std::nullopt;
    }
    take_back(m_request, m_context, owned.sessions);
    return share(std::get<ShareFailure>(turn).run);
  }

  // By the server's clock where the fencing number is its time, else by that of this host.
  [[nodiscard]] Arrival arrival(const LockSession& session) const
  {
    const auto since = std::chrono::floor<Millis>(m_context.clock.now() - m_came).count();
    const std::int64_t here_ms = wall_clock_ms();
    const auto granted_ms = static_cast<std::int64_t>(session.fence() / 1000);
    return {.at_ms = (granted_ms >= here_ms / 2 ? granted_ms : here_ms) - since, .period = session.spec().period};
  }

  [[nodiscard]] RunReport share(const PastRun& run) const
  {
    const int code = *run.exit_code;
    const std::string& name = m_request.name().text();
    m_context.log.notice(shared_text(printable(name), run), {.event = "shared", .key = name, .exit_code = code});
    return {.end = ExitWith{code}};
  }

  // Until then the server keeps the lock taken, so that no other process runs the next attempt earlier.
  std::optional<RunReport> pause_before_retry(const RunReport& report)
  {
    const std::unique_ptr<const LockSet> over(std::exchange(m_kept_open, nullptr));
    m_attempt = over->attempt;
    m_failed = report.end;
    const Millis delay = *report.retry_in;
    m_context.log.notice("attempt " + std::to_string(m_attempt) + " of " + std::to_string(m_request.attempts) +
                             " failed with exit code " + std::to_string(exit_code_of(m_failed)) +
                             "; the next one is in " + show(delay),
                         {.event = "retry", .exit_code = exit_code_of(m_failed)});
    if (m_context.clock.sleep_until(m_context.clock.now() + delay, m_context.signals.stop()) == Wake::stopped) {
      RunReport ended = end_by_signal(m_context);
      ended.outcome = name_of(Outcome::cancelled);
      return ended;
    }
    const auto wait = m_request.wait ? std::optional(std::max(*m_request.wait, least_wait_to_retry)) : std::nullopt;
    m_policy = wait_policy(wait, m_request.server.timeout, m_context.clock, m_request.wait_server);
    m_began = m_context.clock.now();
    return std::nullopt;
  }

  // The set is never destroyed, so that its connections stay open until the process ends. A server that saw them close
  // earlier would handle that while the next holder waits for its answer.
  RunReport run_under_locks(std::unique_ptr<LockSet> owned)
  {
    log_acquired(*owned);
    m_began = m_context.clock.now();
    RunReport report = supervise(m_request, m_context, *owned);
    owned->store->stop_threads();  // they use the caller's objects
    m_kept_open = owned.release();
    return report;
  }

  void tell(const RunReport& report) const
  {
    notify(m_request, m_context, m_kept_open,
           news_of(report, std::chrono::ceil<Millis>(m_context.clock.now() - m_began)), &m_context.signals,
           [&](const std::string& line) { m_context.log.error(line, {.event = "notify_failed"}); });
  }

  void log_acquired(const LockSet& lock_set) const
  {
    if (m_context.log.verbosity() != Verbosity::verbose) {
      return;
    }
    const auto waited = std::chrono::ceil<Millis>(m_context.clock.now() - m_began);
    for (const LockSession& session : lock_set.sessions) {
      m_context.log.detail("acquired " + printable(session.name().text()) + " after " + show(waited),
                           {.event = "acquired", .key = session.name().text(), .fence = session.fence()});
    }
    m_context.log.detail("running " + shown_command(m_request.argv), {.event = "started"});
  }

  std::optional<RunReport> begin_again(const RetryNeeded& retry)
  {
    if (!m_policy.waits && !waits_for_server(m_policy, m_context.clock.now())) {
      return fail(m_request, m_context, {ErrorCode::server_not_ready, retry.why});
    }
    m_context.log.notice(retry.why + "; the job has not run yet: trying again", {.event = "lost"});
    m_server_was_there = true;
    m_policy.was_in_line = retry.was_in_line;
    return pause();
  }

  // A server that was never there is not waited for.
  std::optional<RunReport> failed(const Error& error)
  {
    const bool tries_again = m_server_was_there && may_come_back(error, m_policy, m_context.clock.now());
    return tries_again ? pause() : std::optional(fail(m_request, m_context, error));
  }

  std::optional<RunReport> pause()
  {
    const Wake wake = pause_between_attempts(m_context, m_context.signals.stop());
    return wake == Wake::stopped ? std::optional(end_by_signal(m_context)) : std::nullopt;
  }

  const RunRequest& m_request;
  const RunContext& m_context;
  const std::string m_path;
  Instant m_began = m_context.clock.now();  // this process; then the run
  const Instant m_came = m_began;
  WaitPolicy m_policy;
  int m_attempt = 0;              // the number of the last attempt of this process; 0: none
  RunEnd m_failed = ExitWith{0};  // how that attempt ended
  bool m_server_was_there = false;
  const LockSet* m_kept_open = nullptr;  // the locks that the run had
};

// The error of a command that was not found. A later -- tells that an option has got two words, as in -w 10 min.
Error not_found(const RunRequest& request, Error error)
{
  if (error.code == ErrorCode::not_found && std::ranges::find(request.argv, "--") != request.argv.end()) {
    error.text += " (-- comes before the command, and a duration is one word, such as 10min)";
  }
  return error;
}

}  // namespace

RunEnd run(const RunRequest& request, RunContext context)
{
  const auto path = find_command(request.argv.front(), find_variable(request.environment, "PATH"));
  context.signals.block();
  context.log.detail("server " + request.server.shown() + " (" + request.server.named_by + ")", {.event = "server"});
  if (!path) {
    const RunReport report = fail(request, context, not_found(request, path.error()));
    LockSet not_locked(request, context, std::nullopt);
    not_locked.sessions.front().note_skipped({.exit_code = exit_code_of(report.end)});
    notify(request, context, nullptr, news_of(report, Millis{0}), &context.signals,
           [&](const std::string& line) { context.log.error(line); });
    return report.end;
  }
  return Run(request, context, *path).run();
}

}  // namespace rlock
