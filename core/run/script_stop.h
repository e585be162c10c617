// SPDX-License-Identifier: Apache-2.0
// Stops what a script has started, by the decisions by which the guardian stops a job (process/stopping.h).
#pragma once

#include "base/clock.h"
#include "process/not_killed.h"
#include "process/script_tree.h"
#include "process/shared_deadline.h"
#include "process/stopping.h"
#include "run/request.h"

namespace rlock {

// Threads: used from the main thread of the keeper.
class ScriptStop {
 public:
  // All references must outlive the object. `pipe`: the script may have opened it.
  ScriptStop(const RunRequest& request, const PidFd& script, const ScriptPipe& pipe, const SharedDeadline& deadline,
             const Clock& clock);

  void keep_sessions() { m_script.keep_sessions(); }  // ScriptTree::keep_sessions

  void script_ended();  // RunRequest::leftovers says what happens to the processes that it has left
  void stop(
      Millis
          kill_after);  // the script and its processes, or those that are left; a second call can only shorten the time
  void leave() { m_stop.phase = Phase::over; }  // what is left goes on

  [[nodiscard]] bool is_over() const { return m_stop.phase == Phase::over; }  // also before the first call of these
  [[nodiscard]] Instant due() const;                                          // when the caller must call work()
  void look_soon() { m_look_at = Instant{}; }                                 // a process may have ended
  void work();

 private:
  [[nodiscard]] StopTimes times() const;
  void look();
  void advance(const StopEvent& event);
  void kill();

  const RunRequest& m_request;
  const SharedDeadline& m_deadline;
  const Clock& m_clock;
  ScriptTree m_script;
  const JobSpec m_job;  // how the script is stopped
  StopState m_stop{.phase = Phase::over};
  Instant m_look_at{};
  Instant::duration m_search_time{};  // of the last search for processes of the script
  Instant m_kill_again_at = far_future;
  NotKilledReports m_not_killed;
};

}  // namespace rlock
