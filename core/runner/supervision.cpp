// SPDX-License-Identifier: Apache-2.0
#include "runner/supervision.h"

#include "base/text.h"
#include "runner/farewell.h"
#include "runner/verdict.h"
#include "watch/watchdog.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <system_error>

#include <poll.h>

namespace rlock {
namespace {

// A short job pays two round trips and nothing else: no thread, no second connection.
constexpr Millis unwatched{200};
constexpr Millis guardian_grace{200};
constexpr Millis kill_when_proven{750};  // "KILL within 1 s", with room for a busy machine

Fault exec_fault(int error)
{
  switch (error) {
    case ENOENT: return Fault::not_found;
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE: return Fault::os;
    default: return Fault::not_executable;
  }
}

// One job under one lock, from the fork to the release.
class Supervision {
 public:
  Supervision(const RunRequest& request, const World& world, Tenure& tenure)
      : m_request(request),
        m_world(world),
        m_tenure(tenure),
        m_watch_from(tenure.taken.sent_at + std::min<Millis>(unwatched, request.ttl / 6))
  {
  }

  RunEnd run()
  {
    auto job = m_tenure.preparation.start(m_tenure.taken);
    if (!job) {
      let_go(m_request, m_world, m_tenure, false);
      m_world.log.error(job.error().text);
      return ExitWith{static_cast<int>(exit_code_of(job.error().fault))};
    }
    while (!m_early_end && !m_over) {
      turn(*job);
    }
    if (m_watchdog) {
      m_watchdog->stop();
      m_verdict = m_watchdog->verdict();
    }
    const auto found_gone = let_go(m_request, m_world, m_tenure, m_ended && succeeded(*m_ended) && !m_verdict);
    if (m_early_end) {
      return *m_early_end;
    }
    const Ending end = ending({.job = m_ended,
                               .verdict = m_verdict,
                               .release = found_gone,
                               .automatic = m_request.automatic},
                              printable(m_request.name.text()));
    if (!end.line.empty()) {
      m_world.log.error(end.line);
    }
    return end.end;
  }

 private:
  // Waits for the next event and acts on it.
  void turn(Job& job)
  {
    const bool watched = m_watchdog != nullptr;
    std::array<pollfd, 3> waits{
        pollfd{.fd = m_world.signals.fd(), .events = POLLIN, .revents = 0},
        pollfd{.fd = job.fd(), .events = POLLIN, .revents = 0},
        pollfd{.fd = watched && !m_verdict ? m_watchdog->fd() : -1, .events = POLLIN, .revents = 0}};
    const Instant now = m_world.clock.now();
    ::poll(waits.data(), waits.size(), poll_timeout(now, std::min(m_watch_from, overdue())));

    if (waits[1].revents != 0) {
      job_spoke(job);
    }
    if (waits[0].revents != 0 && !m_over) {
      signal_came(job);
    }
    if (waits[2].revents != 0 && !m_over) {
      watchdog_spoke(job);
    }
    if (!m_over && !m_early_end) {
      time_passed(job);
    }
  }

  // When a guardian that does its work must have finished.
  [[nodiscard]] Instant overdue() const
  {
    const Instant end = m_tenure.preparation.lifeline().valid_until();
    const Instant by_lease = end == far_future ? far_future : end - kill_lead(m_request) / 2;
    return std::min(by_lease, m_over_by);
  }

  void time_passed(Job& job)
  {
    const Instant now = m_world.clock.now();
    if (now >= overdue()) {
      job.take_over();
      m_ended = Ended{.wait_status = SIGKILL, .why = m_verdict ? Stopped::order : Stopped::lifeline, .killed = true};
      m_over = true;
    } else if (now >= m_watch_from) {
      watch(now);
    }
  }

  // No thread or descriptor to be had (a job that forks up to a limit): there may be one in time.
  void watch(Instant now)
  {
    try {
      start_watchdog();
      m_watch_from = far_future;
    } catch (const std::system_error& refused) {
      m_world.log.detail("cannot watch the lease yet: " + refused.code().message());
      m_watch_from = now + m_request.ttl / 50;
    }
  }

  void start_watchdog()
  {
    m_watchdog = std::make_unique<Watchdog>(
        m_tenure.store,
        WatchOrder{.spec = m_tenure.spec,
                   .owner = m_tenure.owner,
                   .renews = m_request.automatic,
                   .acquired_at = m_tenure.taken.sent_at,
                   .kill_margin = signal_lead(m_request),
                   .listener = std::move(m_tenure.taken.listener),
                   .moved = [this](Instant until) { m_tenure.preparation.move_lifeline(until); }},
        m_world.clock, m_world.log);
  }

  void job_spoke(Job& job)
  {
    auto event = job.next();
    if (!event) {
      m_world.log.detail(event.error().text);
      job.take_over();
      m_over = true;
    } else if (*event) {
      std::visit([&](const auto& happened) { on(job, happened); }, **event);
    }
  }

  void on(Job&, const NotExecuted& failure)
  {
    m_world.log.error("cannot execute " + printable(m_request.argv.front()) + ": " +
                      std::strerror(failure.error));
    m_early_end = ExitWith{static_cast<int>(exit_code_of(exec_fault(failure.error)))};
  }
  void on(Job&, const NotStarted&)
  {
    m_world.log.error("the lease of " + printable(m_request.name.text()) +
                      " ran out before the job could start (give a longer --ttl or --lease)");
    m_early_end = ExitWith{static_cast<int>(ExitCode::lost)};
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
        m_world.log.notice("the job left " + count + " behind: stopping (--leftovers wait or leave)");
        break;
      case Leftovers::wait: m_world.log.detail("the job left " + count + " behind: waiting"); break;
      case Leftovers::leave: break;
    }
  }
  void on(Job&, const Ended& ended)
  {
    m_ended = ended;
    m_over = true;
  }
  void on(Job& job, const GuardianGone&)
  {
    job.take_over();
    m_over = true;
  }

  void signal_came(Job& job)
  {
    while (const auto signal = m_world.signals.take()) {
      const bool had_by_job = signal->from_terminal && job.in_foreground();
      if (!had_by_job) {
        job.forward(signal->number);
      }
    }
  }

  void watchdog_spoke(Job& job)
  {
    m_verdict = m_watchdog->verdict();
    if (!m_verdict) {
      return;
    }
    const bool proven = std::holds_alternative<Gone>(*m_verdict);
    const bool wanted = std::holds_alternative<Wanted>(*m_verdict);
    if (m_request.on_lost == OnLost::warn && !wanted) {
      m_world.log.notice("the lock " + printable(m_request.name.text()) +
                         " was lost; the job goes on as --on-lost warn asks");
    } else if (proven || wanted) {
      const Millis kill_after = std::min(m_request.kill_after, kill_when_proven);
      job.stop(kill_after);
      m_over_by = m_world.clock.now() + kill_after + guardian_grace;
    }  // unsure: the guardian acts by the lifeline
  }

  const RunRequest& m_request;
  const World& m_world;
  Tenure& m_tenure;
  Instant m_watch_from;
  Instant m_over_by = far_future;  // when a guardian that was told to stop the job must have done so
  std::unique_ptr<Watchdog> m_watchdog;
  std::optional<Verdict> m_verdict;
  std::optional<Ended> m_ended;
  std::optional<RunEnd> m_early_end;  // the job never ran
  bool m_over = false;
};

}  // namespace

RunEnd supervise(const RunRequest& request, World world, Tenure tenure)
{
  return Supervision(request, world, tenure).run();
}

}  // namespace rlock
