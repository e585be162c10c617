// SPDX-License-Identifier: Apache-2.0
// The guardian while its job runs: waits for events, asks stopping.h what to do, and does it.
#pragma once

#include "base/alarm.h"
#include "process/guardian.h"
#include "process/last_resort.h"
#include "process/process_tree.h"
#include "process/stopping.h"

#include <set>
#include <vector>

namespace rlock {

// Made before the job, which must not start without them.
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

  void run();  // returns when the job is dead and reaped, or left as asked
  [[nodiscard]] bool runner_is_gone() const { return m_runner_is_gone; }  // it ended before the job was over
  [[nodiscard]] bool still_runs() const { return !m_left.empty(); }       // a process that KILL has not ended

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
  std::set<pid_t> m_reported;       // the processes that may not be signalled and were reported
  std::vector<LeftProcess> m_left;  // by the last KILL
  NotKilledReports m_not_killed;
  Instant m_keep_at = far_future;  // when the locks are to be renewed for a runner that is gone
  bool m_main_ended = false;
  bool m_runner_is_gone = false;
};

}  // namespace rlock
