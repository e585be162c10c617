// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual_guardian.h"

#include "process/guardian.h"

#include <csignal>

#include <sys/eventfd.h>

namespace rlock::sim {
namespace {

class Guardian {
 public:
  Guardian(VirtualJob& job, JobSpec spec, SharedDeadline& deadline, Fd socket)
      : m_job(job),
        m_spec(std::move(spec)),
        m_deadline(deadline),
        m_socket(std::move(socket)),
        m_clock(job.guardian->host),
        m_exit(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
  {
    m_job.exit_event = m_exit.get();
  }
  ~Guardian() { m_job.exit_event = -1; }
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  void run()
  {
    const auto fence = await_start();
    if (!fence) {
      if (m_runner_is_gone && m_spec.release_for_runner) {
        m_spec.release_for_runner(std::nullopt);
      }
      return;
    }
    if (!may_start(m_clock.now(), m_deadline.times())) {
      send_message(m_socket.get(), JobEvent(NotStarted{}));
      return;
    }
    m_job.fence = std::stoull(fence->c_str());
    set_timer();
    begin_job(m_job);
    const Instant began = m_clock.now();
    m_state = started(m_spec, began);
    while (m_state.phase != Phase::over) {
      wait();
      handle_end_of_job();
      handle_command();
      advance(TimePassed{});
    }
    if (m_runner_is_gone && m_spec.release_for_runner) {
      m_spec.release_for_runner(OrphanedJob{.started = began, .late_value = fence->c_str()});
    }
  }

 private:
  std::optional<FenceValue> await_start()
  {
    for (;;) {
      pollfd runner{m_socket.get(), POLLIN, 0};
      ::poll(&runner, 1, -1);
      const auto received = receive_message<Command>(m_socket.get());
      m_runner_is_gone = std::holds_alternative<PeerGone>(received);
      if (m_runner_is_gone) {
        return std::nullopt;
      }
      const auto* const command = std::get_if<Command>(&received);
      if (command != nullptr && std::holds_alternative<DiscardJob>(*command)) {
        return std::nullopt;
      }
      if (const auto* start = command != nullptr ? std::get_if<StartJob>(command) : nullptr) {
        return start->value;
      }
    }
  }

  void wait()
  {
    set_timer();
    pollfd sources[] = {{m_socket.get(), POLLIN, 0}, {m_exit.get(), POLLIN, 0}, {m_deadline.moved_fd(), POLLIN, 0}};
    const Nanos due = m_job.guardian->host.true_time(next_due(m_state, m_deadline.times()));
    World::current().block(sources, 3, due);
    m_deadline.note_move();
  }

  // The kernel kills the guardian then, unless it sets the timer anew.
  void set_timer()
  {
    const std::uint64_t setting = ++m_job.timer;
    World::current().at(m_job.guardian->host.true_time(m_deadline.times().last_resort), [&job = m_job, setting] {
      if (job.timer == setting) {
        kill_guardian(job);
      }
    });
  }

  void handle_end_of_job()
  {
    if (!m_job.is_alive && !m_main_ended) {
      m_main_ended = true;
      advance(MainEnded{Others::none});
    }
  }

  void handle_command()
  {
    const auto received = receive_message<Command>(m_socket.get());
    if (std::holds_alternative<PeerGone>(received)) {
      m_runner_is_gone = m_state.phase != Phase::over;
      advance(RunnerGone{});
    } else if (const auto* command = std::get_if<Command>(&received)) {
      if (const auto* order = std::get_if<StopOrder>(command)) {
        advance(*order);
      } else if (const auto* kill = std::get_if<KillOrder>(command)) {
        advance(*kill);
      }
    }
  }

  void advance(const StopEvent& event)
  {
    const StopStep step = next_step(m_spec, m_state, event, m_clock.now(), m_deadline.times());
    m_state = step.state;
    switch (step.action) {
      case StopAction::signal:
        if (!m_job.behavior.ignores_term) {
          World::current().after(1'000'000, [&job = m_job] { end_job(job, SIGTERM); });
        }
        return;
      case StopAction::kill:
        kill_job(m_job);
        while (m_job.is_alive) {
          m_clock.sleep_until(m_clock.now() + std::chrono::microseconds(100), StopToken::never());
        }
        return advance(TreeEmpty{});
      case StopAction::finish:
        ++m_job.timer;
        send_message(m_socket.get(),
                     JobEvent(JobEnd{.wait_status = m_job.status, .why = m_state.why, .killed = m_state.killed}));
        return;
      default: return;
    }
  }

  VirtualJob& m_job;
  const JobSpec m_spec;
  SharedDeadline& m_deadline;
  const Fd m_socket;
  const Host& m_clock;
  const Fd m_exit;
  StopState m_state;
  bool m_main_ended = false;
  bool m_runner_is_gone = false;
};

}  // namespace

void guard(VirtualJob& job, JobSpec spec, SharedDeadline& deadline, Fd socket)
{
  Guardian(job, std::move(spec), deadline, std::move(socket)).run();
}

}  // namespace rlock::sim
