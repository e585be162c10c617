// SPDX-License-Identifier: Apache-2.0
// The event loop of the guardian while its job runs: waits for an event, asks stopping.h for the next step, and takes that step.
#pragma once

#include "base/alarm.h"
#include "process/guardian.h"
#include "process/last_resort.h"
#include "process/process_tree.h"
#include "process/stopping.h"

#include <set>
#include <vector>

namespace rlock {

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

}  // namespace rlock
