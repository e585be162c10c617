// SPDX-License-Identifier: Apache-2.0
// Decides when, how and why the guardian stops the job. Pure functions, so that a test can list every order of events.
#pragma once

#include "base/clock.h"
#include "process/job.h"
#include "process/shared_deadline.h"

#include <variant>

namespace rlock {

enum class Phase {
  running,    // the main process runs
  lingering,  // the main process ended by itself; other processes of the job are left
  stopping,   // the stop signal was sent
  killing,    // the guardian repeats KILL until no process is left
  over,
};

struct StopState {
  Phase phase = Phase::running;
  Stopped why = Stopped::none;
  bool killed = false;
  Instant time_over = far_future;    // the end of max_runtime
  Instant left_behind = far_future;  // lingering: when the other processes count as left behind
  Instant kill_at =
      far_future;  // stopping, or after a KillOrder: when KILL is due, unless the shared deadline is earlier
};

// How long processes may take to end or to become daemons when the main process has ended.
constexpr Millis settling_time{50};

// A job does not start if the guardian would have to stop it earlier than this.
constexpr Millis shortest_run{10};

struct StopOrder {
  Millis kill_after;
};
// KILL after that time unless the job has ended. The guardian sends no stop signal, because the job has got a signal of the user.
struct KillOrder {
  Millis after;
};
enum class Others { none, some };
struct MainEnded {
  Others others;
};
struct LeaveProcesses {};  // the other processes may go on without the guardian
struct TreeEmpty {};       // no process is left, and the main process is reaped
struct RunnerGone {};
struct TimePassed {};
using StopEvent = std::variant<StopOrder, KillOrder, MainEnded, LeaveProcesses, TreeEmpty, RunnerGone, TimePassed>;

enum class StopAction {
  nothing,
  signal,  // send the stop signal, and CONT, because a stopped process would not react
  report_leftovers,
  stop_leftovers,  // signal and report_leftovers
  report_pipe_holders,
  kill,  // repeat KILL until TreeEmpty or LeaveProcesses
  finish,
};

struct StopStep {
  StopState state;
  StopAction action = StopAction::nothing;
};

// Whether the start gate lets a job begin on this lease.
bool may_start(Instant now, const StopTimes& times);

StopState started(const JobSpec& spec, Instant now);

StopStep next_step(const JobSpec& spec, const StopState& state, const StopEvent& event, Instant now,
                   const StopTimes& times);

// When the next TimePassed has an effect, if there is no other event and the shared deadline does not move.
Instant next_due(const StopState& state, const StopTimes& times);

}  // namespace rlock
