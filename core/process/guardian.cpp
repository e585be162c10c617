// SPDX-License-Identifier: Apache-2.0
#include "process/guardian.h"

#include "base/alarm.h"
#include "base/log.h"
#include "base/scheduling.h"
#include "process/descriptors.h"
#include "process/detach.h"
#include "process/guardian_messages.h"
#include "process/last_resort.h"
#include "process/process_tree.h"
#include "process/stopping.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rlock {
namespace {

// The death of a process whose parent is a daemon is told to nobody but that daemon.
constexpr int look_again_ms = 250;

Fd open_child_deaths()
{
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, SIGCHLD);
  return Fd(::signalfd(-1, &only, SFD_CLOEXEC | SFD_NONBLOCK));
}

// What tells the guardian that time has come; made before the job, which must not start without.
struct EventSources {
  Fd deaths = open_child_deaths();
  Alarm alarm;
  [[nodiscard]] bool complete() const { return deaths && alarm.fd() >= 0; }
};

// When the kernel is to kill the guardian, and the job with it, unless a renewal moves the end of the lease.
Instant last_resort_due(const GuardianTask& task)
{
  const Instant valid_until = task.shared_deadline.valid_until();
  return valid_until == far_future ? far_future : valid_until - task.spec.last_resort_lead;
}

class Guardian {
 public:
  Guardian(const GuardianTask& task, EventSources& sources, LastResort& last_resort, pid_t job)
      : m_task(task),
        m_sources(sources),
        m_last_resort(last_resort),
        m_process_tree(job, task.grouping),
        m_state(started(task.spec, m_clock.now()))
  {
  }

  void guard();
  [[nodiscard]] bool orphaned() const { return m_orphaned; }
  [[nodiscard]] bool still_runs() const { return !m_still_run.empty(); }

 private:
  void wait();
  void look_after_children();
  void look_at_the_dead();
  void obey();
  void advance(const StopEvent& event);
  void act(StopAction what);
  void name(const std::vector<pid_t>& refused);
  void tell(const JobEvent& event) const { send_message(m_task.socket.get(), event); }

  const GuardianTask& m_task;
  EventSources& m_sources;
  LastResort& m_last_resort;
  BootClock m_clock;
  ProcessTree m_process_tree;
  StopState m_state;
  std::set<pid_t> m_named;         // the processes that may not be signalled, and were told of
  std::vector<pid_t> m_still_run;  // those of them that were there at the end
  bool m_main_ended = false;
  bool m_orphaned = false;  // the runner went away before all was over
};

void Guardian::guard()
{
  while (m_state.phase != Phase::over) {
    wait();
    look_after_children();  // first: who ended by itself was not stopped by what came meanwhile
    obey();
    advance(TimePassed{});
  }
}

void Guardian::wait()
{
  const Instant valid_until = m_task.shared_deadline.valid_until();
  m_sources.alarm.set(next_look(m_task.spec, m_state, valid_until));
  m_last_resort.set_due(last_resort_due(m_task));
  pollfd sources[] = {{m_task.socket.get(), POLLIN, 0},
                      {m_sources.deaths.get(), POLLIN, 0},
                      {m_sources.alarm.fd(), POLLIN, 0},
                      {m_task.shared_deadline.moved_fd(), POLLIN, 0}};
  ::poll(sources, std::size(sources), m_main_ended ? look_again_ms : -1);
  if (sources[3].revents != 0) {
    m_task.shared_deadline.note_move();
  }
}

void Guardian::look_after_children()
{
  signalfd_siginfo death{};
  const bool died = ::read(m_sources.deaths.get(), &death, sizeof death) == sizeof death;
  if (!died && !m_main_ended) {
    return;
  }
  m_process_tree.reap();
  const auto pause = m_process_tree.take_pause();
  if (pause && m_task.grouping == Grouping::shared) {
    tell(Paused{*pause});
  }
  if (m_process_tree.main_status()) {
    look_at_the_dead();
  }
}

void Guardian::look_at_the_dead()
{
  if (m_main_ended) {
    if (m_process_tree.is_empty()) {
      advance(TreeEmpty{});
    }
    return;
  }
  m_main_ended = true;
  advance(MainEnded{m_process_tree.is_empty() ? Others::none : Others::some});
}

void Guardian::obey()
{
  const auto received = receive_message<Command>(m_task.socket.get());
  if (std::holds_alternative<PeerGone>(received)) {
    m_orphaned = m_state.phase != Phase::over;
    advance(RunnerGone{});
    return;
  }
  if (const auto* command = std::get_if<Command>(&received)) {
    if (const auto* order = std::get_if<StopOrder>(command)) {
      advance(*order);
    } else if (const auto* leave = std::get_if<LeaveProcesses>(command)) {
      advance(*leave);
    } else if (const auto* forward = std::get_if<ForwardSignal>(command)) {
      name(m_process_tree.forward(forward->signal));
    }
  }
}

void Guardian::advance(const StopEvent& event)
{
  const StopStep step = next_step(m_task.spec, m_state, event, m_clock.now(), m_task.shared_deadline.valid_until());
  m_state = step.state;
  act(step.act);
}

void Guardian::act(StopAction what)
{
  switch (what) {
    case StopAction::nothing: return;
    case StopAction::report_pipe_holders:
      redirect_streams();  // who waits for their end waits for the job, and the runner may go
      tell(PipeHoldersLeft{m_process_tree.main_status().value_or(0)});
      return;
    case StopAction::report_leftovers:
    case StopAction::stop_leftovers:
      tell(LeftBehind{static_cast<unsigned>(m_process_tree.alive().size())});
      if (what == StopAction::report_leftovers) {
        return;
      }
      [[fallthrough]];
    case StopAction::signal: name(m_process_tree.stop(m_task.spec.stop_signal)); return;
    case StopAction::kill:
      m_still_run = m_process_tree.kill_all();
      name(m_still_run);
      advance(TreeEmpty{});
      return;
    case StopAction::finish:
      m_last_resort.disarm();
      tell(Ended{m_process_tree.main_status().value_or(0), m_state.why, m_state.killed, still_runs()});
      return;
  }
}

void Guardian::name(const std::vector<pid_t>& refused)
{
  for (const pid_t pid : refused) {
    if (!m_named.insert(pid).second) {
      continue;
    }
    if (m_orphaned) {
      Log(Verbosity::normal).error(not_signalled_text(pid), {.event = "not_signalled"});
    } else {
      tell(NotSignalled{pid});
    }
  }
}

void block_everything()
{
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

// What the runner says when the lock is ours; nullopt when it goes away instead.
std::optional<LateValue> await_go(int socket)
{
  for (;;) {
    pollfd runner{socket, POLLIN, 0};
    ::poll(&runner, 1, -1);
    const auto received = receive_message<Command>(socket);
    if (std::holds_alternative<PeerGone>(received)) {
      return std::nullopt;
    }
    const auto* command = std::get_if<Command>(&received);
    if (const auto* go = command != nullptr ? std::get_if<StartJob>(command) : nullptr) {
      return go->value;
    }
  }
}

bool is_gone(int socket)
{
  pollfd peer{socket, POLLIN, 0};
  return ::poll(&peer, 1, 0) == 1 && (peer.revents & POLLHUP) != 0;
}

// The word of the runner, while it lives, on a lease that does.
class StartGate final : public Gate {
 public:
  StartGate(const GuardianTask& task, const LastResort& last_resort) : m_task(task), m_last_resort(last_resort) {}

  std::optional<LateValue> pass() override
  {
    auto value = await_go(m_task.socket.get());
    const bool allowed = value && !is_gone(m_task.socket.get()) &&
                         may_start(m_task.spec, m_clock.now(), m_task.shared_deadline.valid_until());
    if (!allowed) {
      return std::nullopt;
    }
    m_task.shared_deadline.set_main_process(::getpid());
    m_last_resort.cover_this_process(m_task.grouping);
    return value;
  }

 private:
  const GuardianTask& m_task;
  const LastResort& m_last_resort;
  BootClock m_clock;
};

void say(const GuardianTask& task, const JobEvent& event) { send_message(task.socket.get(), event); }

void close_all(const std::vector<int>& descriptors)
{
  for (const int fd : descriptors) {
    ::close(fd);
  }
}

// The runner was killed. Daemons that have the descriptor of the heirs are not touched, and keep the lock.
void end_for_runner(const GuardianTask& task, bool still_runs, Instant started)
{
  const bool may_release = !still_runs && !task.inherited_pipe.any() && task.spec.release_for_runner;
  const bool released = may_release && task.spec.release_for_runner(started);
  Log(Verbosity::normal)
      .error(std::string("rlock was killed: ") +
                 (still_runs ? "a process of its job still runs" : "its job was stopped") +
                 (released ? " and its lock released" : ", and its lock is left to its ttl"),
             {.event = "killed"});
  finish_log();
}

// From the start of the job to its end. `inherited` is the job's, not ours.
void live(const GuardianTask& task, pid_t group, const std::vector<int>& inherited)
{
  EventSources sources;
  if (!sources.complete()) {
    return say(task, NotExecuted{errno});
  }
  LastResort last_resort;
  // Before the job exists, because the guardian may be stopped before it runs again. The lease of a job that waits for its
  // turn is not known yet.
  if (const Instant due = last_resort_due(task); due > BootClock().now()) {
    last_resort.set_due(due);
  }
  StartGate gate(task, last_resort);
  const Launch launched = launch(task.spec, task.signals, group, gate);
  close_all(inherited);
  if (const auto* failure = std::get_if<NotExecuted>(&launched)) {
    return say(task, *failure);
  }
  if (std::holds_alternative<NotStarted>(launched)) {
    return say(task, NotStarted{});
  }
  if (std::holds_alternative<GateKilled>(launched)) {
    return say(task, GateKilled{});
  }
  const Instant started = BootClock().now();
  Guardian guardian(task, sources, last_resort, std::get<Launched>(launched).pid);
  guardian.guard();
  if (guardian.orphaned()) {
    end_for_runner(task, guardian.still_runs(), started);
  }
}

}  // namespace

void run_guardian(GuardianTask task)
{
  block_everything();
  ::prctl(PR_SET_NAME, "rlock-guardian");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::vector<int> inherited =
      close_own_descriptors(std::array{task.socket.get(), task.shared_deadline.moved_fd(), task.inherited_pipe.fd()});
  const pid_t group = task.grouping == Grouping::shared ? ::getpgrp() : 0;
  ::setpgid(0, 0);  // out of the runner's group

  live(task, group, inherited);
  step_aside();
  give_way();  // to the runner
  ::_exit(0);
}

}  // namespace rlock
