// SPDX-License-Identifier: Apache-2.0
#include "process/guardian.h"

#include "base/log.h"
#include "base/scheduling.h"
#include "process/descriptors.h"
#include "process/guardian_loop.h"
#include "process/guardian_messages.h"
#include "process/proc.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace rlock {
namespace {

void block_all_signals()
{
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

// Waits until the lock is held.
std::variant<LateValue, DiscardJob, PeerGone> await_start(int socket)
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

// Opens when the runner, which must still live, sends StartJob while the lease is still valid.
class StartGate final : public Gate {
 public:
  StartGate(const GuardianTask& task, LastResort& last_resort) : m_task(task), m_last_resort(last_resort) {}

  std::optional<LateValue> pass() override
  {
    const auto told = await_start(m_task.socket.get());
    const auto* value = std::get_if<LateValue>(&told);
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
  LateValue m_value;
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
  Log(Verbosity::normal).error(runner_killed_text(still_runs, released), {.event = "killed"});
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

}  // namespace rlock
