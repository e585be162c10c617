// SPDX-License-Identifier: Apache-2.0
#include "process/guardian_loop.h"

#include "base/log.h"
#include "process/detach.h"
#include "process/guardian_messages.h"

#include <algorithm>
#include <csignal>
#include <iterator>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace rlock {
namespace {

// The kernel reports the death of a process to its parent only. A daemon's children are looked at in this period.
constexpr int poll_period_ms = 250;

// The kernel kills a guardian that does not send KILL again for that long, while its runner lives.
constexpr Millis longest_kill_pause{2000};

Fd open_child_exits()
{
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, SIGCHLD);
  return Fd(::signalfd(-1, &only, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

EventSources::EventSources() : child_exits(open_child_exits()) {}

GuardianLoop::GuardianLoop(const GuardianTask& task, EventSources& sources, LastResort& last_resort, pid_t job)
    : m_task(task),
      m_sources(sources),
      m_last_resort(last_resort),
      m_process_tree(job, task.grouping),
      m_state(started(task.spec, m_clock.now()))
{
}

void GuardianLoop::run()
{
  while (m_state.phase != Phase::over) {
    wait();
    handle_child_exits();  // first: a job that ended by itself was not stopped by a command that came meanwhile
    handle_command();
    advance(TimePassed{});
    if (still_runs() && m_state.phase == Phase::killing) {
      kill_job();
    }
  }
}

void GuardianLoop::wait()
{
  const StopTimes times = m_task.shared_deadline.times();
  m_sources.alarm.set(next_due(m_state, times));
  if (!still_runs()) {
    m_last_resort.set_due(times.last_resort);
  } else {
    m_last_resort.set_due(m_runner_is_gone ? far_future
                                           : std::max(times.last_resort, m_clock.now() + longest_kill_pause));
  }
  pollfd sources[] = {{m_runner_is_gone ? -1 : m_task.socket.get(), POLLIN, 0},
                      {m_sources.child_exits.get(), POLLIN, 0},
                      {m_sources.alarm.fd(), POLLIN, 0},
                      {m_task.shared_deadline.moved_fd(), POLLIN, 0}};
  ::poll(sources, std::size(sources), m_main_ended || still_runs() ? poll_period_ms : -1);
  if (sources[3].revents != 0) {
    m_task.shared_deadline.note_move();
    m_task.shared_deadline.set_daemons(m_process_tree.daemons());
  }
}

void GuardianLoop::handle_child_exits()
{
  signalfd_siginfo exit{};
  const bool has_exit = ::read(m_sources.child_exits.get(), &exit, sizeof exit) == sizeof exit;
  if (!has_exit && !m_main_ended) {
    return;
  }
  m_process_tree.reap();
  const auto pause = m_process_tree.take_pause();
  if (pause && m_task.grouping == Grouping::shared) {
    send(Paused{*pause});
  }
  if (m_process_tree.main_status()) {
    handle_main_exit();
  }
}

void GuardianLoop::handle_main_exit()
{
  if (m_main_ended) {
    if (m_process_tree.is_empty()) {
      m_left.clear();
      advance(TreeEmpty{});
    }
    return;
  }
  m_main_ended = true;
  advance(MainEnded{m_process_tree.is_empty() ? Others::none : Others::some});
}

void GuardianLoop::handle_command()
{
  if (m_runner_is_gone) {
    return;
  }
  const auto received = receive_message<Command>(m_task.socket.get());
  if (std::holds_alternative<PeerGone>(received)) {
    m_runner_is_gone = m_state.phase != Phase::over;
    m_keep_at = m_clock.now() + kill_patience;
    advance(RunnerGone{});
    return;
  }
  if (const auto* command = std::get_if<Command>(&received)) {
    if (const auto* order = std::get_if<StopOrder>(command)) {
      advance(*order);
    } else if (const auto* kill = std::get_if<KillOrder>(command)) {
      advance(*kill);
    } else if (const auto* leave = std::get_if<LeaveProcesses>(command)) {
      advance(*leave);
    } else if (const auto* forward = std::get_if<ForwardSignal>(command)) {
      report_not_signalled(m_process_tree.forward(forward->signal));
    }
  }
}

void GuardianLoop::advance(const StopEvent& event)
{
  const StopStep step = next_step(m_task.spec, m_state, event, m_clock.now(), m_task.shared_deadline.times());
  m_state = step.state;
  perform(step.action);
}

void GuardianLoop::perform(StopAction action)
{
  switch (action) {
    case StopAction::nothing: return;
    case StopAction::report_pipe_holders:
      redirect_streams();  // so that a reader of the job's output does not wait for the guardian
      send(PipeHoldersLeft{m_process_tree.main_status().value_or(0)});
      return;
    case StopAction::report_leftovers:
    case StopAction::stop_leftovers:
      send(LeftBehind{static_cast<unsigned>(m_process_tree.alive().size())});
      if (action == StopAction::report_leftovers) {
        return;
      }
      [[fallthrough]];
    case StopAction::signal: report_not_signalled(m_process_tree.stop(m_task.spec.stop_signal)); return;
    case StopAction::kill: kill_job(); return;
    case StopAction::finish:
      m_last_resort.disarm();
      send(Ended{m_process_tree.main_status().value_or(0), m_state.why, m_state.killed, still_runs()});
      return;
  }
}

void GuardianLoop::kill_job()
{
  const bool is_first = !still_runs();
  m_left = m_process_tree.kill_all(is_first ? first_kill_patience : kill_patience);
  if (!still_runs()) {
    return advance(TreeEmpty{});
  }
  if (is_first) {
    send(StillKilling{});
  }
  for (const LeftProcess& process : m_not_killed.due(m_left, m_clock.now())) {
    if (m_runner_is_gone) {
      Log(Verbosity::normal).error(not_killed_text(process), {.event = "not_killed"});
    } else {
      send(NotKilled{process});
    }
  }
  if (m_clock.now() >= m_keep_at) {
    keep_for_runner();
  }
}

void GuardianLoop::keep_for_runner()
{
  const auto next = m_task.spec.keep_for_runner ? m_task.spec.keep_for_runner() : std::nullopt;
  m_keep_at = next.value_or(far_future);
  if (!next) {
    advance(LeaveProcesses{});
  }
}

// Sends a message to the runner, or logs it when the runner is gone.
void GuardianLoop::report_not_signalled(const std::vector<pid_t>& refused)
{
  for (const pid_t pid : refused) {
    if (!m_reported.insert(pid).second) {
      continue;
    }
    if (m_runner_is_gone) {
      Log(Verbosity::normal).error(not_signalled_text(pid), {.event = "not_signalled"});
    } else {
      send(NotSignalled{pid});
    }
  }
}

void GuardianLoop::send(const JobEvent& event) const { send_message(m_task.socket.get(), event); }

}  // namespace rlock
