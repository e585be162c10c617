// SPDX-License-Identifier: Apache-2.0
#include "runner/supervision.h"

#include "base/courtesy.h"
#include "base/text.h"
#include "runner/common_lease.h"
#include "runner/farewell.h"
#include "runner/verdict.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include <poll.h>

namespace rlock {
namespace {

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

// One job under its locks, from the fork to the release.
class Supervision {
 public:
  Supervision(const RunRequest& request, const World& world, Tenure& tenure)
      : m_request(request),
        m_world(world),
        m_tenure(tenure),
        m_taken_at(tenure.taken_at()),
        m_watch_from(tenure.watch_from()),
        m_lease(tenure.leases(), [this](Instant until) { m_tenure.preparation.move_lifeline(until); })
  {
  }

  ~Supervision()
  {
    for (Holding& holding : m_tenure.holdings) {
      holding.unwatch();  // what the watchdogs call is ours
    }
  }
  Supervision(const Supervision&) = delete;
  Supervision& operator=(const Supervision&) = delete;

  RunEnd run()
  {
    auto job = m_tenure.preparation.start(m_tenure.locks(), m_tenure.first_to_end().valid_until(),
                                           m_tenure.holdings.front().fence());
    if (!job) {
      release();
      m_world.log.error(job.error().text);
      return ExitWith{static_cast<int>(exit_code_of(job.error().fault))};
    }
    while (!m_early_end && !m_over) {
      turn(*job);
    }
    const auto found = release();
    return m_early_end ? *m_early_end : end(found);
  }

 private:
  std::vector<std::optional<NotOurs>> release()
  {
    step_aside();
    for (Holding& holding : m_tenure.holdings) {
      holding.unwatch();
      m_lost = m_lost || holding.verdict();
    }
    return let_go(m_request, m_world, m_tenure.holdings,
                  {.give_up = m_world.clock.now() + m_request.server.timeout,
                   .keep_until = m_taken_at + m_request.min_hold,
                   .succeeded = m_ended && succeeded(*m_ended) && !m_lost});
  }

  RunEnd end(const std::vector<std::optional<NotOurs>>& found)
  {
    std::vector<LockFate> fates;
    for (std::size_t i = 0; i < found.size(); ++i) {
      Holding& holding = m_tenure.holdings[i];
      fates.push_back({.lock = printable(holding.name().text()),
                       .verdict = holding.verdict(),
                       .release = found[i],
                       .valid_until = holding.valid_until()});
    }
    const Ending end = ending({.job = m_ended, .locks = std::move(fates), .automatic = m_request.automatic});
    if (!end.line.empty()) {
      m_world.log.error(end.line);
    }
    return end.end;
  }

  // Waits for the next event and acts on it.
  void turn(Job& job)
  {
    std::vector<pollfd> waits{{.fd = m_world.signals.fd(), .events = POLLIN, .revents = 0},
                              {.fd = job.fd(), .events = POLLIN, .revents = 0}};
    for (const Holding& holding : m_tenure.holdings) {
      waits.push_back({.fd = holding.verdict_fd(), .events = POLLIN, .revents = 0});
    }
    const Instant now = m_world.clock.now();
    ::poll(waits.data(), waits.size(), poll_timeout(now, std::min(m_watch_from, overdue())));

    if (waits[1].revents != 0) {
      job_spoke(job);
    }
    if (waits[0].revents != 0 && !m_over) {
      signal_came(job);
    }
    for (std::size_t i = 2; i < waits.size() && !m_over; ++i) {
      if (waits[i].revents != 0) {
        watchdog_spoke(job, m_tenure.holdings[i - 2]);
      }
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
      m_ended = Ended{.wait_status = SIGKILL, .why = m_lost ? Stopped::order : Stopped::lifeline, .killed = true};
      m_over = true;
    } else if (now >= m_watch_from) {
      watch(now);
    }
  }

  // No thread or descriptor to be had (a job that forks up to a limit): there may be one in time.
  void watch(Instant now)
  {
    try {
      for (std::size_t i = 0; i < m_tenure.holdings.size(); ++i) {
        if (!m_tenure.holdings[i].is_watched()) {
          m_tenure.holdings[i].watch([this, i](Instant until) { m_lease.move(i, until); });
        }
      }
      m_watch_from = far_future;
    } catch (const std::system_error& refused) {
      m_world.log.detail("cannot watch the lease yet: " + refused.code().message());
      m_watch_from = now + m_request.ttl / 50;
    }
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
    m_world.log.error("the lease of " + printable(m_tenure.first_to_end().name().text()) +
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

  void watchdog_spoke(Job& job, Holding& holding)
  {
    const auto& verdict = holding.verdict();
    if (!verdict) {
      return;
    }
    m_lost = true;
    const bool proven = std::holds_alternative<Gone>(*verdict);
    const bool wanted = std::holds_alternative<Wanted>(*verdict);
    if (m_request.on_lost == OnLost::warn && !wanted) {
      m_world.log.notice("the lock " + printable(holding.name().text()) +
                         " was lost; the job goes on as --on-lost warn asks");
    } else if (proven || wanted) {
      // Nested jobs go from the inside out, so that each rlock is there to let go before its own job is over.
      const Millis kill_after = std::min(m_request.kill_after, kill_when_proven / holding.depth());
      job.stop(kill_after);
      m_over_by = std::min(m_over_by, m_world.clock.now() + kill_after + guardian_grace);
    }  // unsure: the guardian acts by the lifeline
  }

  const RunRequest& m_request;
  const World& m_world;
  Tenure& m_tenure;
  const Instant m_taken_at;
  Instant m_watch_from;
  Instant m_over_by = far_future;  // when a guardian that was told to stop the job must have done so
  CommonLease m_lease;
  std::optional<Ended> m_ended;
  std::optional<RunEnd> m_early_end;  // the job never ran
  bool m_lost = false;                // one of the locks
  bool m_over = false;
};

}  // namespace

RunEnd supervise(const RunRequest& request, const World& world, Tenure& tenure)
{
  return Supervision(request, world, tenure).run();
}

}  // namespace rlock
