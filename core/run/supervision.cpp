// SPDX-License-Identifier: Apache-2.0
// Longer than 300 lines because each event changes the state of one class; messages are in report.cpp.
#include "run/supervision.h"

#include "base/text.h"
#include "lease/lease.h"
#include "process/not_killed.h"
#include "run/attempts.h"
#include "run/left_keeper.h"
#include "run/notify.h"
#include "run/release.h"
#include "run/report.h"
#include "run/stop_times.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace rlock {
namespace {

constexpr Millis guardian_grace{200};  // for a guardian that was told to stop the job, beyond the kill grace
constexpr Millis kill_pause{250};      // between two attempts to kill a job without its guardian

// One job under its locks, from the fork to the release.
class Supervision {
 public:
  Supervision(const RunRequest& request, const RunContext& context, LockSet& lock_set)
      : m_request(request),
        m_context(context),
        m_lock_set(lock_set),
        m_began(context.clock.now()),
        m_leases({.renews = request.automatic,
                  .consequence = request.on_lost == OnLost::stop ? "the job will be stopped" : "its lease ends",
                  .on_moved = [this](const LeaseBudget& lease) { m_lock_set.prepared_job->move_deadline(lease); },
                  .interrupt = context.signals.stop()},
                 context.clock, context.log)
  {
    for (LockSession& session : lock_set.sessions) {
      m_leases.add(session.lease());
    }
  }

  RunReport run()
  {
    if (auto failed = run_until_over()) {
      return *failed;
    }
    m_job_over_at = m_context.clock.now();
    if (m_killed_after && m_ended && !m_lost) {
      report_killed_after(m_request, m_context, *m_ended, *m_killed_after);
    }
    const bool keeps_locks = m_was_released || m_still_runs || m_role == Role::replaced;
    const ReleaseFindings findings = keeps_locks ? ReleaseFindings(m_lock_set.sessions.size()) : release(result());
    const Verdict verdict = verdict_after(findings);  // what the release found may change the one of result()
    if (m_role == Role::successor) {
      end_as_successor(verdict);
    }
    RunReport report = m_never_ran ? *m_never_ran : report_verdict(m_context, m_lock_set, verdict, m_lost_at_ms);
    if (m_role == Role::replaced) {
      report.outcome.clear();  // the successor tells
    }
    report.retry_in = next_attempt(result_of(verdict));
    return report;
  }

 private:
  enum class Role {
    runner,
    replaced,  // the command has ended, and a successor, a fork of this process, holds the locks
    successor,
  };

  [[noreturn]] void end_as_successor(const Verdict& verdict)
  {
    write_to_syslog(line_of(verdict, m_lost_at_ms));
    stop_threads();
    notify(m_request, m_context, &m_lock_set,
           news_of(report_of(verdict, m_lost_at_ms), std::chrono::ceil<Millis>(m_context.clock.now() - m_began)),
           &m_context.signals, write_to_syslog);
    ::_exit(0);
  }

  void stop_threads()
  {
    m_leases.stop_watchdog();
    m_lock_set.store->stop_threads();
  }

  // Starts another process when the prepared one was killed before it became the job. Returns the end of rlock when the
  // job could not be forked.
  std::optional<RunReport> run_until_over()
  {
    m_lock_set.prepared_job->move_deadline(m_lock_set.first_to_expire().lease().budget());
    do {
      m_job.reset();
      auto job = m_lock_set.prepared_job->start(m_lock_set.held_locks(), m_lock_set.sessions.front().fence());
      if (!job) {
        release({.exit_code = failure(job.error().code, m_request.compatibility).code});
        m_context.log.error(job.error().text, {.event = "failed"});
        return RunReport{.end = failure(job.error().code, m_request.compatibility),
                         .outcome = std::string(name_of(Outcome::failed)),
                         .message = job.error().text};
      }
      m_job.emplace(*std::move(job));
      m_gate_killed = false;
      while (!m_never_ran && !m_over && !m_gate_killed) {
        handle_events(*m_job);
      }
    } while (m_gate_killed);
    return std::nullopt;
  }

  [[nodiscard]] Verdict verdict_after(const ReleaseFindings& findings)
  {
    return verdict_of({.job = m_ended,
                       .locks = lock_facts(m_lock_set.sessions, findings),
                       .automatic = m_request.automatic,
                       .compatibility = m_request.compatibility,
                       .max_runtime = m_request.max_runtime,
                       .still_runs = m_still_runs,
                       .was_cancelled = m_was_cancelled});
  }

  // The end of the run, as far as it is known before the release, which writes it to the event log.
  [[nodiscard]] RunResult result()
  {
    m_leases.stop_watchdog();
    RunResult result = m_never_ran ? RunResult{.exit_code = exit_code_of(m_never_ran->end)}
                                   : result_of(verdict_after(ReleaseFindings(m_lock_set.sessions.size())));
    if (m_request.once && !m_never_ran) {
      result.attempt = m_lock_set.attempt;
      const Instant now = m_context.clock.now();
      result.kept_for = std::max(std::chrono::ceil<Millis>(keep_until(result, now) - now), Millis{0});
    }
    return result;
  }

  // A job that never ran, or that still runs, is not tried again.
  [[nodiscard]] std::optional<Millis> next_attempt(const RunResult& result) const
  {
    return m_never_ran || m_still_runs ? std::nullopt : next_attempt_in(m_request, m_lock_set.attempt, result);
  }

  // --min-hold does not delay another attempt; it counts from the beginning of the last one.
  [[nodiscard]] Instant keep_until(const RunResult& result, Instant now) const
  {
    const auto pause = next_attempt(result);
    return pause ? now + *pause : m_began + m_request.min_hold;
  }

  ReleaseFindings release(const RunResult& result)
  {
    m_leases.stop_watchdog();
    m_lost = m_lost || m_leases.with_event() != nullptr;
    const Instant now = m_context.clock.now();
    return release_all(m_request, m_context, m_lock_set.sessions,
                       {.give_up = now + m_request.server.timeout,
                        .keep_until = is_release_requested() ? Instant{} : keep_until(result, now),
                        .began = m_began,
                        .succeeded = m_ended && succeeded(*m_ended) && !m_lost,
                        .ended = m_job_over_at,
                        .lease_over = m_ended && m_ended->why == Stopped::lease_end,
                        .result = result});
  }

  // Then --min-hold keeps none of the locks.
  bool is_release_requested()
  {
    return std::ranges::any_of(m_lock_set.sessions, [](LockSession& session) {
      const auto& event = session.lease().event();
      return event && std::holds_alternative<ReleaseRequested>(*event);
    });
  }

  void handle_events(Job& job)
  {
    std::array<pollfd, 5> waits{{{.fd = m_context.signals.fd(), .events = POLLIN, .revents = 0},
                                 {.fd = job.fd(), .events = POLLIN, .revents = 0},
                                 {.fd = m_leases.fd(), .events = POLLIN, .revents = 0},
                                 {.fd = m_leases.message_fd(), .events = POLLIN, .revents = 0},
                                 {.fd = m_pipe_is_open ? job.pipe_fd() : -1, .events = 0, .revents = 0}}};
    const Instant now = m_context.clock.now();
    const int ready =
        ::poll(waits.data(), waits.size(), poll_timeout(now, std::min({m_leases.due(), kill_due(), leave_due()})));
    if (ready < 0) {  // out of memory: the job may have ended all the same
      waits[0].revents = waits[1].revents = POLLIN;
    }

    if (waits[1].revents != 0) {
      handle_job_event(job);
    }
    if (waits[0].revents != 0 && !m_over) {
      forward_signals(job);
    }
    if (waits[2].revents != 0 && !m_over) {
      handle_lease_news(job);
    }
    m_has_message = m_has_message || waits[3].revents != 0;
    if (waits.back().revents != 0 && !m_over) {
      handle_pipe_closed(job);
    }
    if (!m_over && !m_never_ran) {
      handle_time(job);
    }
  }

  void handle_lease_news(Job& job)
  {
    const std::vector<Lease*> news = m_leases.take_news();
    for (LockSession& session : m_lock_set.sessions) {
      const bool has_news = std::ranges::find(news, &session.lease()) != news.end();
      if (!has_news || m_over) {
        continue;
      }
      const bool is_lost_later = session.lease().is_lost_later();
      if (!is_lost_later || !m_lost) {  // a request and the loss may come together
        handle_lease_event(job, session);
      }
      if (is_lost_later && !m_over && !std::exchange(m_is_hurried, true)) {
        tell_loss_while_killing(Lost{{.cause = LossCause::ended_before_job}}, session);
        stop(job, kill_after_loss, session);
      }
    }
  }

  // When this process kills the job. A working guardian has finished before, or has said that it goes on killing.
  [[nodiscard]] Instant kill_due() const
  {
    if (m_is_still_killing) {
      return m_guardian_is_gone ? m_kill_again_at : far_future;
    }
    return std::min(m_lock_set.prepared_job->stop_times().last_resort, m_stopped_by);
  }

  // A fixed lease cannot be renewed for processes that KILL has not ended.
  [[nodiscard]] Instant leave_due() const
  {
    const bool waits = m_is_still_killing && !m_request.automatic && !m_still_runs;
    return waits ? m_lock_set.first_to_expire().lease().budget().valid_until() : far_future;
  }

  void handle_time(Job& job)
  {
    const Instant now = m_context.clock.now();
    if (now >= kill_due()) {
      kill_job(job);
    }
    if (now >= leave_due()) {
      leave_job(job);
    }
    if (!m_over && (now >= m_leases.due() || m_has_message)) {
      m_has_message = false;
      m_leases.watch();
    }
  }

  // Kills the job because the guardian is late or gone. The kernel kills a late guardian, too (StopTimes::last_resort).
  void kill_job(Job& job)
  {
    const Instant now = m_context.clock.now();
    if (!m_is_still_killing && now >= kill_due()) {
      m_ended = JobEnd{
          .wait_status = SIGKILL, .why = now >= m_stopped_by ? Stopped::order : Stopped::lease_end, .killed = true};
    }
    const std::vector<LeftProcess> left = job.take_over();
    if (!left.empty()) {
      note_still_killing();
    }
    m_guardian_is_gone = true;
    m_over = left.empty();
    m_kill_again_at = m_context.clock.now() + kill_pause;
    for (const LeftProcess& process : m_not_killed.due(left, now)) {
      report_not_killed(m_context, process);
    }
  }

  // Reports now a lock that was lost before, because the job may not end soon.
  void note_still_killing()
  {
    if (std::exchange(m_is_still_killing, true)) {
      return;
    }
    for (LockSession& session : m_lock_set.sessions) {
      if (const auto& event = session.lease().event()) {
        tell_loss_while_killing(*event, session);
      }
    }
  }

  // The end of a fixed lease is no loss.
  void tell_loss_while_killing(const LeaseEvent& event, const LockSession& session)
  {
    const bool is_loss =
        std::holds_alternative<Lost>(event) || (std::holds_alternative<Unconfirmed>(event) && m_request.automatic);
    if (m_is_still_killing && is_loss) {
      report_lost_while_killing(m_context, event, session.name());
    }
  }

  void leave_job(Job& job)
  {
    m_still_runs = true;
    m_over = m_guardian_is_gone;
    job.leave();
  }

  void handle_job_event(Job& job)
  {
    auto event = job.next();
    if (!event) {
      m_context.log.detail(event.error().text);
      kill_job(job);
    } else if (*event) {
      std::visit([&](const auto& happened) { on(job, happened); }, **event);
    }
  }

  void on(Job&, const NotExecuted& failed) { m_never_ran = report_not_executed(m_request, m_context, failed); }
  void on(Job&, const NotStarted&) { m_never_ran = report_not_started(m_context, m_lock_set.first_to_expire()); }
  void on(Job& job, const GateKilled&)
  {
    job.take_over();
    m_gate_killed = true;
  }
  // The shell that waits for rlock must see it stop as the job did; then `fg` continues both.
  void on(Job& job, const Paused&)
  {
    ::raise(SIGSTOP);
    job.forward(SIGCONT);
  }
  void on(Job&, const LeftBehind& left) { report_left_behind(m_request, m_context, left); }
  void on(Job&, const NotSignalled& refused) { report_not_signalled(m_context, refused.pid); }
  void on(Job&, const LastResortRefused& refused) { report_no_last_resort(m_context, refused); }
  void on(Job&, const StillKilling&) { note_still_killing(); }
  void on(Job&, const NotKilled& left) { report_not_killed(m_context, left.process); }
  void on(Job& job, const PipeHoldersLeft& command)
  {
    m_ended = JobEnd{.wait_status = command.wait_status, .why = Stopped::none, .killed = false};
    if (m_was_released || !job.pipe_is_held()) {
      job.leave();
    } else {
      keep_until_pipe_closes(job);
    }
  }
  // Processes that still hold the pipe are daemons.
  void on(Job& job, const JobEnd& ended)
  {
    m_ended = ended;
    m_is_guarded = false;
    m_still_runs = ended.still_runs;
    m_over = m_lost || m_was_released || m_still_runs || !job.pipe_is_held();
    if (!m_over) {
      keep_until_pipe_closes(job);
    }
  }
  void on(Job& job, const GuardianGone&) { kill_job(job); }

  // The locks are held on by the successor; by this process when the fork fails.
  void keep_until_pipe_closes(Job& job)
  {
    m_pipe_is_open = true;
    stop_threads();
    for (LockSession& session : m_lock_set.sessions) {
      if (session.lease().event()) {
        return handle_lease_event(job, session);
      }
    }
    const pid_t successor = m_role == Role::successor ? -1 : ::fork();
    if (successor > 0) {
      job.give_to_child();
      m_role = Role::replaced;
      m_over = true;
    } else if (successor == 0) {
      m_role = Role::successor;
      detach_as_keeper();
    }
  }

  void handle_pipe_closed(Job& job)
  {
    m_pipe_is_open = false;
    if (m_is_guarded) {
      job.leave();
    } else {
      m_over = true;
    }
  }

  // The job itself may release its lock, by rlock flock -u.
  bool was_released_by_job(const LeaseEvent& event, LockSession& session)
  {
    if (m_request.compatibility != Compatibility::flock || !std::holds_alternative<Lost>(event)) {
      return false;
    }
    m_leases.stop_watchdog();
    return session.was_released();
  }

  void go_on_without_lock(Job& job)
  {
    m_was_released = true;
    m_lock_set.prepared_job->remove_deadline();
    if (m_pipe_is_open) {
      handle_pipe_closed(job);
    }
  }

  void forward_signals(Job& job)
  {
    while (const auto signal = m_context.signals.take()) {
      m_was_cancelled = m_was_cancelled || (!m_ended && is_cancelled_by(signal->number));
      const bool job_has_it = signal->from_terminal && job.shares_group();
      if (m_is_still_killing) {
        report_signal_while_killing(m_context, signal->number);
      } else if (!job_has_it) {
        pass_on(job, signal->number);
      }
    }
  }

  // Passes a signal on. A given --kill-after counts from the first signal that asks the job to end, as in timeout(1).
  void pass_on(Job& job, int signal)
  {
    const bool kills = m_request.kills_after_signal && asks_to_end(signal);
    const bool kills_at_once = kills && m_request.kill_after == Millis{0};
    if (!kills_at_once) {
      job.forward(signal);
    }
    if (kills) {
      m_killed_after = m_killed_after.value_or(signal);
      job.kill(m_request.kill_after);
      m_stopped_by = std::min(m_stopped_by, m_context.clock.now() + m_request.kill_after + guardian_grace);
    }
  }

  void handle_lease_event(Job& job, LockSession& session)
  {
    const auto& event = session.lease().event();
    if (!event) {
      return;
    }
    if (was_released_by_job(*event, session)) {
      return go_on_without_lock(job);
    }
    m_lost = true;
    m_lost_at_ms = m_lost_at_ms == 0 ? wall_clock_ms() : m_lost_at_ms;
    const bool is_proven = std::holds_alternative<Lost>(*event);
    const bool is_requested = std::holds_alternative<ReleaseRequested>(*event);
    tell_loss_while_killing(*event, session);
    if (m_request.on_lost == OnLost::warn && !is_requested) {
      m_context.log.notice(
          "the lock " + printable(session.name().text()) + " was lost; the job goes on as --on-lost warn asks",
          {.event = "lost", .key = session.name().text()});
    } else if (is_proven || is_requested) {
      if (is_requested) {
        report_requested(m_context, std::get<ReleaseRequested>(*event), session.name());
      }
      stop(job, is_proven ? kill_after_loss : m_request.kill_after, session);
    }  // Unconfirmed: the guardian acts by the shared deadline
    m_over = m_over || !m_is_guarded;
  }

  // Stops the job. The innermost of nested jobs gets the shortest time, so that each rlock can release before its outer rlock
  // kills it.
  void stop(Job& job, Millis longest, const LockSession& session)
  {
    const Millis kill_after = std::min(m_request.kill_after, longest / session.depth());
    job.stop(kill_after);
    m_stopped_by = std::min(m_stopped_by, m_context.clock.now() + kill_after + guardian_grace);
  }

  const RunRequest& m_request;
  const RunContext& m_context;
  LockSet& m_lock_set;
  const Instant m_began;
  LeaseGroup m_leases;
  std::optional<Job> m_job;           // over by the time of the release, but its guardian is reaped after it
  Instant m_stopped_by = far_future;  // a guardian that was told to stop the job has done so by then
  std::optional<JobEnd> m_ended;
  std::optional<RunReport> m_never_ran;  // why, and how rlock ends; nullopt: the job runs
  std::int64_t m_lost_at_ms = 0;         // by the wall clock; 0: no loss was seen before the release
  Instant m_kill_again_at = far_future;
  NotKilledReports m_not_killed;  // of this process
  Instant m_job_over_at = far_future;
  std::optional<int> m_killed_after;  // the signal of the user from which --kill-after counts
  Role m_role = Role::runner;
  bool m_lost = false;              // one of the locks
  bool m_was_cancelled = false;     // a signal has asked the job to end
  bool m_has_message = false;       // for a watchdog without a thread
  bool m_is_hurried = false;        // a lock was lost after ReleaseRequested, before the job had stopped
  bool m_was_released = false;      // by the job itself
  bool m_is_still_killing = false;  // KILL was sent, and processes of the job are left
  bool m_guardian_is_gone = false;  // this process sends KILL, because the guardian is gone
  bool m_still_runs = false;        // at the end of a fixed lease: processes that KILL has not ended
  bool m_over = false;
  bool m_gate_killed = false;  // the process was killed before it became the job
  bool m_is_guarded = true;
  bool m_pipe_is_open = false;  // the command has ended, and processes that it left hold the inherited pipe
};

}  // namespace

RunReport supervise(const RunRequest& request, const RunContext& context, LockSet& lock_set)
{
  return Supervision(request, context, lock_set).run();
}

}  // namespace rlock
