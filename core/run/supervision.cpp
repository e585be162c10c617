// SPDX-License-Identifier: Apache-2.0
#include "run/supervision.h"

#include "base/text.h"
#include "base/timestamp.h"
#include "process/process_tree.h"
#include "run/keeper.h"
#include "run/lease_watch.h"
#include "run/outcome.h"
#include "run/release_all.h"
#include "run/syslog.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include <poll.h>
#include <unistd.h>

namespace rlock {
namespace {

constexpr Millis guardian_grace{200};
constexpr Millis question{250};          // how long a lock that is gone may be asked about
constexpr Millis kill_when_proven{750};  // "KILL within 1 s", with room for a busy machine

ErrorCode exec_fault(int error)
{
  switch (error) {
    case ENOENT: return ErrorCode::not_found;
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE: return ErrorCode::os;
    default: return ErrorCode::not_executable;
  }
}

// One job under its locks, from the fork to the release.
class Supervision {
 public:
  Supervision(const RunRequest& request, const RunContext& context, LockSet& lock_set)
      : m_request(request),
        m_context(context),
        m_lock_set(lock_set),
        m_taken_at(lock_set.taken_at()),
        m_watch(request, context, lock_set)
  {
  }

  RunEnd run()
  {
    Instant valid_until = m_lock_set.first_to_end().valid_until();
    do {
      auto job = m_lock_set.prepared_job.start(m_lock_set.locks(), valid_until, m_lock_set.sessions.front().fence());
      if (!job) {
        release();
        m_context.log.error(job.error().text, {.event = "failed"});
        return failure(job.error().fault, m_request.compatibility);
      }
      m_gate_killed = false;
      while (!m_early_end && !m_over && !m_gate_killed) {
        turn(*job);
      }
      valid_until = m_lock_set.prepared_job.shared_deadline().valid_until();
    } while (m_gate_killed);
    const bool keeps = m_let_go || m_still_runs || m_role == Role::relieved;
    const auto found = keeps ? std::vector<std::optional<NotHeld>>(m_lock_set.sessions.size()) : release();
    if (m_role == Role::keeper) {
      write_to_syslog(line_of(ending_after(found)));
      ::_exit(0);
    }
    return m_early_end ? *m_early_end : end(found);
  }

 private:
  enum class Role {
    runner,
    relieved,  // the command is over, and a keeper has the locks
    keeper,
  };

  std::vector<std::optional<NotHeld>> release()
  {
    for (LockSession& session : m_lock_set.sessions) {
      session.unwatch();
      m_lost = m_lost || session.lease_event();
    }
    return release_all(m_request, m_context, m_lock_set.sessions,
                       {.give_up = m_context.clock.now() + m_request.server.timeout,
                        .keep_until = is_wanted() ? Instant{} : m_taken_at + m_request.min_hold,
                        .succeeded = m_ended && succeeded(*m_ended) && !m_lost,
                        .lease_over = m_ended && m_ended->why == Stopped::lease_end});
  }

  RunOutcome ending_after(const std::vector<std::optional<NotHeld>>& found)
  {
    return run_outcome({.job = m_ended,
                        .locks = lock_outcomes(m_lock_set.sessions, found),
                        .automatic = m_request.automatic,
                        .compatibility = m_request.compatibility,
                        .still_runs = m_still_runs});
  }

  [[nodiscard]] std::string line_of(const RunOutcome& end) const
  {
    const bool is_loss = end.event == "lost" || end.event == "forced";
    return end.line + (is_loss ? when_lost() : "");
  }

  // An operator wants one of the locks: none is kept by --min-hold.
  bool is_wanted()
  {
    return std::any_of(m_lock_set.sessions.begin(), m_lock_set.sessions.end(), [](LockSession& session) {
      return session.lease_event() && std::holds_alternative<ReleaseRequested>(*session.lease_event());
    });
  }

  RunEnd end(const std::vector<std::optional<NotHeld>>& found)
  {
    const RunOutcome end = ending_after(found);
    if (!end.line.empty()) {
      m_context.log.error(
          line_of(end),
          {.event = end.event, .key = end.lock, .fence = fence_of(end.lock), .exit_code = code_of(end.end)});
    }
    return end.end;
  }

  // 0 for a lock that the job does not have.
  [[nodiscard]] std::uint64_t fence_of(const std::string& lock) const
  {
    const auto found = std::find_if(m_lock_set.sessions.begin(), m_lock_set.sessions.end(),
                                    [&](const LockSession& session) { return session.name().text() == lock; });
    return found == m_lock_set.sessions.end() ? 0 : found->fence();
  }

  // nullopt: rlock dies of a signal.
  static std::optional<int> code_of(const RunEnd& end)
  {
    const auto* exit = std::get_if<ExitWith>(&end);
    return exit != nullptr ? std::optional(exit->code) : std::nullopt;
  }

  // "; noticed at 2026-11-21 12:00:00 UTC"
  [[nodiscard]] std::string when_lost() const
  {
    const auto moment = readable_utc(m_lost_at_ms == 0 ? wall_clock_ms() : m_lost_at_ms);
    return moment ? "; noticed at " + *moment : "";
  }

  // Waits for the next event and acts on it.
  void turn(Job& job)
  {
    std::vector<pollfd> waits{{.fd = m_context.signals.fd(), .events = POLLIN, .revents = 0},
                              {.fd = job.fd(), .events = POLLIN, .revents = 0}};
    for (const LockSession& session : m_lock_set.sessions) {
      waits.push_back({.fd = session.event_fd(), .events = POLLIN, .revents = 0});
    }
    for (const LockSession& session : m_lock_set.sessions) {
      waits.push_back({.fd = m_is_hurried ? -1 : session.lost_fd(), .events = POLLIN, .revents = 0});
    }
    waits.push_back({.fd = m_has_heirs ? job.pipe_fd() : -1, .events = 0, .revents = 0});
    const Instant now = m_context.clock.now();
    ::poll(waits.data(), waits.size(), poll_timeout(now, std::min(m_watch.due(), overdue())));

    if (waits[1].revents != 0) {
      job_spoke(job);
    }
    if (waits[0].revents != 0 && !m_over) {
      signal_came(job);
    }
    const std::size_t locks = m_lock_set.sessions.size();
    for (std::size_t i = 0; i < locks && !m_over; ++i) {
      if (waits[i + 2].revents != 0) {
        watchdog_spoke(job, m_lock_set.sessions[i]);
      }
      if (waits[i + 2 + locks].revents != 0) {
        m_is_hurried = true;
        stop(job, kill_when_proven, m_lock_set.sessions[i]);
      }
    }
    if (waits.back().revents != 0 && !m_over) {
      last_heir_left(job);
    }
    if (!m_over && !m_early_end) {
      time_passed(job);
    }
  }

  // When a guardian that does its work must have finished.
  [[nodiscard]] Instant overdue() const
  {
    const Instant end = m_lock_set.prepared_job.shared_deadline().valid_until();
    const Instant by_lease = end == far_future ? far_future : end - stop_leads(m_request).last_resort;
    return std::min(by_lease, m_over_by);
  }

  void time_passed(Job& job)
  {
    const Instant now = m_context.clock.now();
    if (now >= overdue()) {
      take_over(job);
    } else if (now >= m_watch.due()) {
      m_watch.begin();
    }
  }

  // A guardian that is late or gone; the kernel ends one that is late, too (JobSpec::last_resort_lead).
  void take_over(Job& job)
  {
    const Instant now = m_context.clock.now();
    for (const pid_t pid : job.take_over()) {
      m_still_runs = true;
      on(job, NotSignalled{pid});
    }
    if (now >= overdue()) {
      m_ended =
          Ended{.wait_status = SIGKILL, .why = now >= m_over_by ? Stopped::order : Stopped::lease_end, .killed = true};
    }
    m_over = true;
  }

  void job_spoke(Job& job)
  {
    auto event = job.next();
    if (!event) {
      m_context.log.detail(event.error().text);
      take_over(job);
    } else if (*event) {
      std::visit([&](const auto& happened) { on(job, happened); }, **event);
    }
  }

  void on(Job&, const NotExecuted& failed)
  {
    const ExitWith end = failure(exec_fault(failed.error), m_request.compatibility);
    m_context.log.error("cannot execute " + printable(m_request.argv.front()) + ": " + std::strerror(failed.error),
                        {.event = "failed", .exit_code = end.code});
    m_early_end = end;
  }
  void on(Job&, const NotStarted&)
  {
    m_context.log.error("the lease of " + printable(m_lock_set.first_to_end().name().text()) +
                            " ran out before the job could start (give a longer --ttl or --lease)",
                        {.event = "lost", .exit_code = static_cast<int>(ExitCode::lost)});
    m_early_end = ExitWith{static_cast<int>(ExitCode::lost)};
  }
  void on(Job& job, const GateKilled&)
  {
    job.take_over();
    m_gate_killed = true;
  }
  // As if we were the job: the shell that waits for us sees us stop, and `fg` continues both.
  void on(Job& job, const Paused&)
  {
    ::raise(SIGSTOP);
    job.forward(SIGCONT);
  }
  void on(Job&, const LeftBehind& left)
  {
    const std::string count = std::to_string(left.count) + (left.count == 1 ? " process" : " processes");
    switch (m_request.leftovers) {
      case Leftovers::stop:
        m_context.log.notice("the job left " + count + " behind: stopping (--leftovers wait or leave)",
                             {.event = "left_behind"});
        break;
      case Leftovers::wait:
        m_context.log.detail("the job left " + count + " behind: waiting", {.event = "left_behind"});
        break;
      case Leftovers::leave:
      case Leftovers::until_pipe_closes: break;
    }
  }
  void on(Job&, const NotSignalled& refused)
  {
    m_context.log.error(not_signalled_text(refused.pid), {.event = "not_signalled"});
  }
  void on(Job& job, const PipeHoldersLeft& command)
  {
    m_ended = Ended{.wait_status = command.wait_status, .why = Stopped::none, .killed = false};
    if (m_let_go || !job.pipe_is_held()) {
      job.leave();
    } else {
      keep_for_heirs(job);
    }
  }
  // Heirs that are left now are daemons.
  void on(Job& job, const Ended& ended)
  {
    m_ended = ended;
    m_is_guarded = false;
    m_still_runs = ended.still_runs;
    m_over = m_lost || m_let_go || m_still_runs || !job.pipe_is_held();
    if (!m_over) {
      keep_for_heirs(job);
    }
  }
  void on(Job& job, const GuardianGone&) { take_over(job); }

  // From here on in a process of its own; in ours if there is none to be had.
  void keep_for_heirs(Job& job)
  {
    m_has_heirs = true;
    m_watch.rest();
    for (LockSession& session : m_lock_set.sessions) {
      if (session.lease_event()) {
        return watchdog_spoke(job, session);
      }
    }
    const pid_t keeper = m_role == Role::keeper ? -1 : ::fork();
    if (keeper > 0) {
      job.hand_over();
      m_role = Role::relieved;
      m_over = true;
      return;
    }
    if (keeper == 0) {
      m_role = Role::keeper;
      detach_as_keeper();
    }
  }

  void last_heir_left(Job& job)
  {
    m_has_heirs = false;
    if (m_is_guarded) {
      job.leave();
    } else {
      m_over = true;
    }
  }

  // What the job let go of itself, by rlock flock -u, is not lost.
  bool was_let_go(const LeaseEvent& lease_event, LockSession& session)
  {
    if (m_request.compatibility != Compatibility::flock || !std::holds_alternative<Lost>(lease_event)) {
      return false;
    }
    return session.was_released({.deadline = m_context.clock.now() + question, .stop = StopToken::never()});
  }

  void note_let_go(Job& job)
  {
    m_let_go = true;
    m_lock_set.prepared_job.move_deadline(far_future);
    if (m_has_heirs) {
      last_heir_left(job);
    }
  }

  void signal_came(Job& job)
  {
    while (const auto signal = m_context.signals.take()) {
      const bool had_by_job = signal->from_terminal && job.shares_group();
      if (!had_by_job) {
        job.forward(signal->number);
      }
    }
  }

  void watchdog_spoke(Job& job, LockSession& session)
  {
    const auto& lease_event = session.lease_event();
    if (!lease_event) {
      return;
    }
    if (was_let_go(*lease_event, session)) {
      return note_let_go(job);
    }
    m_lost = true;
    m_lost_at_ms = m_lost_at_ms == 0 ? wall_clock_ms() : m_lost_at_ms;
    const bool proven = std::holds_alternative<Lost>(*lease_event);
    const bool wanted = std::holds_alternative<ReleaseRequested>(*lease_event);
    if (m_request.on_lost == OnLost::warn && !wanted) {
      m_context.log.notice(
          "the lock " + printable(session.name().text()) + " was lost; the job goes on as --on-lost warn asks",
          {.event = "lost", .key = session.name().text()});
    } else if (proven || wanted) {
      stop(job, proven ? kill_when_proven : m_request.kill_after, session);
    }  // unsure: the guardian acts by the lifeline
    m_over = m_over || !m_is_guarded;
  }

  // Nested jobs go from the inside out, so that each rlock is there to let go before its own job is over.
  void stop(Job& job, Millis longest, const LockSession& session)
  {
    const Millis kill_after = std::min(m_request.kill_after, longest / session.depth());
    job.stop(kill_after);
    m_over_by = std::min(m_over_by, m_context.clock.now() + kill_after + guardian_grace);
  }

  const RunRequest& m_request;
  const RunContext& m_context;
  LockSet& m_lock_set;
  const Instant m_taken_at;
  Instant m_over_by = far_future;  // when a guardian that was told to stop the job must have done so
  LeaseWatch m_watch;
  std::optional<Ended> m_ended;
  std::optional<RunEnd> m_early_end;  // the job never ran
  bool m_lost = false;                // one of the locks
  std::int64_t m_lost_at_ms = 0;      // by the wall clock; 0: not before it was to be released
  bool m_is_hurried = false;          // a lock that is wanted was lost before the job had stopped
  bool m_let_go = false;
  bool m_still_runs = false;  // processes of the job that may not be signalled: the locks are left to their ttl
  bool m_over = false;
  bool m_gate_killed = false;  // the process that was to become the job: another one is started
  Role m_role = Role::runner;
  bool m_is_guarded = true;
  bool m_has_heirs = false;  // the command has ended, and some of its processes have what it left them
};

}  // namespace

RunEnd supervise(const RunRequest& request, const RunContext& context, LockSet& lock_set)
{
  return Supervision(request, context, lock_set).run();
}

}  // namespace rlock
