// SPDX-License-Identifier: Apache-2.0
#include "process/guardian.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>
#include "base/log.h"
#include "base/stop.h"
#include "base/system.h"
#include "process/descriptors.h"
#include "process/last_resort.h"
#include "process/not_killed.h"
#include "process/process_tree.h"
#include "process/stopping.h"

namespace rlock {

// The event loop of the guardian while its job runs: waits for an event, asks stopping.h for the next step, and takes that step.

// What the loop waits for. The guardian makes the sources before the job, which must not start without them.
struct EventSources {
  EventSources();
  [[nodiscard]] bool complete() const { return child_exits && alarm.fd() >= 0; }

  Fd child_exits;  // readable after a SIGCHLD
  Alarm alarm;
};

class GuardianLoop {
 public:
  // `job`: the main process of the job, a child of this process. The other arguments must outlive the loop.
  GuardianLoop(const GuardianTask& task, EventSources& sources, LastResort& last_resort, pid_t job);

  void run();  // returns when the job is dead and reaped, or after LeaveProcesses
  [[nodiscard]] bool runner_is_gone() const { return m_runner_is_gone; }  // the runner ended before the job was over
  [[nodiscard]] bool still_runs() const { return !m_left.empty(); }       // KILL has not ended a process of the job

 private:
  void wait();
  void handle_child_exits();
  void handle_main_exit();
  void handle_command();
  void advance(const StopEvent& event);
  void perform(StopAction action);
  void kill_job();
  void keep_for_runner();
  void report_not_signalled(const std::vector<pid_t>& refused);
  void send(const JobEvent& event) const;

  const GuardianTask& m_task;
  EventSources& m_sources;
  LastResort& m_last_resort;
  BootClock m_clock;
  ProcessTree m_process_tree;
  StopState m_state;
  std::set<pid_t> m_reported;       // the reported processes that may not be signalled
  std::vector<LeftProcess> m_left;  // what the last KILL left
  NotKilledReports m_not_killed;
  Instant m_keep_at = far_future;  // when to renew the locks for a runner that is gone
  bool m_main_ended = false;
  bool m_runner_is_gone = false;
};

namespace {

void block_all_signals()
{
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

// Waits until the lock is held.
std::variant<FenceValue, DiscardJob, PeerGone> await_start(int socket)
{
  for (;;) {
    pollfd runner{socket, POLLIN, 0};
    ::poll(&runner, 1, -1);
    const auto received = receive_message<Command>(socket);
    if (std::holds_alternative<PeerGone>(received)) {
      return PeerGone{};
    }
    const auto* command = std::get_if<Command>(&received);
    if (command != nullptr && std::holds_alternative<DiscardJob>(*command)) {
      return DiscardJob{};
    }
    if (const auto* start = command != nullptr ? std::get_if<StartJob>(command) : nullptr) {
      return start->value;
    }
  }
}

bool is_gone(int socket)
{
  pollfd peer{socket, POLLIN, 0};
  return ::poll(&peer, 1, 0) == 1 && (peer.revents & POLLHUP) != 0;
}

// Opens when the runner, which must still live, sends StartJob while the lease is still valid. The process of the job reads
// StartJob itself, from the guardian's socket.
class StartGate final : public Gate {
 public:
  StartGate(const GuardianTask& task, LastResort& last_resort) : m_task(task), m_last_resort(last_resort) {}

  std::optional<FenceValue> pass() override
  {
    const auto told = await_start(m_task.socket.get());
    const auto* value = std::get_if<FenceValue>(&told);
    // A recv(2) that fails is no proof: the runner may live.
    m_runner_is_gone = !std::holds_alternative<DiscardJob>(told) && is_gone(m_task.socket.get());
    if (value == nullptr || m_runner_is_gone || !may_start(m_clock.now(), m_task.shared_deadline.times())) {
      return std::nullopt;
    }
    m_value = *value;
    m_task.shared_deadline.set_main_process(::getpid());
    m_last_resort.cover_this_process(m_task.grouping);
    return *value;
  }

  [[nodiscard]] bool is_passed() const override { return m_task.shared_deadline.main_process() != 0; }

  // Instead of a start. Under an emulator that copies the memory of vfork's parent it stays false, and the ttl ends the lock.
  [[nodiscard]] bool runner_is_gone() const { return m_runner_is_gone; }

  // The value after the gate was passed; empty under such an emulator.
  [[nodiscard]] const char* late_value() const { return m_value.c_str(); }

 private:
  const GuardianTask& m_task;
  LastResort& m_last_resort;
  BootClock m_clock;
  // Written by the process at the gate, which shares the memory.
  bool m_runner_is_gone = false;
  FenceValue m_value;
};

void send(const GuardianTask& task, const JobEvent& event) { send_message(task.socket.get(), event); }

void close_all(const std::vector<int>& descriptors)
{
  for (const int fd : descriptors) {
    ::close(fd);
  }
}

// The runner was killed before the job began: in line, or so soon after the grant that it could not start the job. Its request
// may still be on its way; then the ttl ends the lock.
void finish_without_job(const GuardianTask& task)
{
  if (task.spec.release_for_runner) {
    task.spec.release_for_runner(std::nullopt);
  }
}

// Ends the locks of a runner that was killed. If daemons hold the inherited pipe, they and the lock stay untouched.
void finish_without_runner(const GuardianTask& task, bool still_runs, const OrphanedJob& job)
{
  const bool may_release = !still_runs && !task.inherited_pipe.is_held() && task.spec.release_for_runner;
  const bool released = may_release && task.spec.release_for_runner(job);
  Log(Verbosity::normal)
      .error(runner_killed_text(still_runs, released) + " (" + task.spec.lock_names + ")", {.event = "killed"});
  finish_log();
}

// The first time of the last resort. The guardian sets it before the job exists, because the guardian may be stopped before it
// runs again. The lease of a job that is prepared before the grant is not known yet.
Instant first_due(const GuardianTask& task)
{
  const Instant due = task.shared_deadline.times().last_resort;
  return due > BootClock().now() ? due : task.spec.earliest_last_resort;
}

// Tells the runner what the system refused. A job that no deadline stops needs no timer.
void report_refused(const GuardianTask& task, LastResortRefused refused)
{
  if (task.shared_deadline.times().last_resort == far_future) {
    refused.timer = 0;
  }
  if (refused.timer != 0 || refused.pipe != 0) {
    send(task, refused);
  }
}

// Guards the job from its start to its end. Closes `inherited`, the descriptors that only the job needs.
void guard_job(const GuardianTask& task, pid_t group, const std::vector<int>& inherited)
{
  EventSources sources;
  if (!sources.complete()) {
    return send(task, NotExecuted{errno});
  }
  LastResort last_resort;
  last_resort.set_due(first_due(task));
  StartGate gate(task, last_resort);
  const Launch launched = launch(task.spec, task.signals, group, gate);
  close_all(inherited);
  if (const auto* failure = std::get_if<NotExecuted>(&launched)) {
    return send(task, *failure);
  }
  if (std::holds_alternative<NotStarted>(launched)) {
    return gate.runner_is_gone() ? finish_without_job(task) : send(task, NotStarted{});
  }
  if (std::holds_alternative<GateKilled>(launched)) {
    return send(task, GateKilled{});
  }
  const Instant started = BootClock().now();
  report_refused(task, last_resort.refused());
  GuardianLoop loop(task, sources, last_resort, std::get<Launched>(launched).pid);
  loop.run();
  if (loop.runner_is_gone()) {
    finish_without_runner(task, loop.still_runs(), {.started = started, .late_value = gate.late_value()});
  }
}

}  // namespace

std::string runner_killed_text(bool still_runs, bool released)
{
  return std::string("rlock was killed: ") + (still_runs ? "a process of its job still runs" : "its job was stopped") +
         (released ? " and its lock released" : ", and its lock is left to its ttl");
}

void run_guardian(GuardianTask task)
{
  block_all_signals();
  ::prctl(PR_SET_NAME, guardian_name);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::vector<int> inherited =
      close_own_descriptors(std::array{task.socket.get(), task.shared_deadline.moved_fd(), task.inherited_pipe.fd()});
  const pid_t group = task.grouping == Grouping::shared ? ::getpgrp() : 0;
  ::setpgid(0, 0);  // out of the runner's group

  guard_job(task, group, inherited);
  use_batch_scheduling();
  yield_core();  // to the runner
  ::_exit(0);
}

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
    m_keep_at = m_clock.now() + kill_attempt_time;
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
      send(JobEnd{m_process_tree.main_status().value_or(0), m_state.why, m_state.killed, still_runs()});
      return;
  }
}

void GuardianLoop::kill_job()
{
  const bool is_first = !still_runs();
  m_left = m_process_tree.kill_all(is_first ? first_kill_attempt_time : kill_attempt_time);
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
