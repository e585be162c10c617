// SPDX-License-Identifier: Apache-2.0
// When the guardian stops the job, how, and why. Pure functions, so that a test can list every order of events.
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
  killing,    // KILL is being sent until no process is left
  over,
};

struct StopState {
  Phase phase = Phase::running;
  Stopped why = Stopped::none;
  bool killed = false;
  Instant time_over = far_future;    // the end of max_runtime
  Instant left_behind = far_future;  // lingering: when the other processes count as left behind
  Instant kill_at = far_future;      // stopping, or after a KillOrder; the shared deadline may require it earlier
};

// Processes that are about to daemonize or to end when the main process ends get this time.
constexpr Millis settling_time{50};

// A job does not start when it would have to be stopped earlier than that.
constexpr Millis shortest_run{10};

struct StopOrder {
  Millis kill_after;
};
// KILL after that time unless the job has ended; no reason to stop, because the job has a signal of the user to act on.
struct KillOrder {
  Millis after;
};
enum class Others { none, some };
struct MainEnded {
  Others others;
};
struct LeaveProcesses {};  // the other processes may go on without the guardian
struct TreeEmpty {};       // and the main process is reaped
struct RunnerGone {};
struct TimePassed {};
using StopEvent = std::variant<StopOrder, KillOrder, MainEnded, LeaveProcesses, TreeEmpty, RunnerGone, TimePassed>;

enum class StopAction {
  nothing,
  signal,  // the stop signal, and CONT, because a stopped process would not react
  report_leftovers,
  stop_leftovers,  // both of the above
  report_pipe_holders,
  kill,  // until TreeEmpty or LeaveProcesses
  finish,
};

struct StopStep {
  StopState state;
  StopAction action = StopAction::nothing;
};

// The start gate: whether a job may begin on this lease.
bool may_start(Instant now, const StopTimes& times);

StopState started(const JobSpec& spec, Instant now);

StopStep next_step(const JobSpec& spec, const StopState& state, const StopEvent& event, Instant now,
                   const StopTimes& times);

// When TimePassed will have an effect, if there is no other event and the shared deadline does not move.
Instant next_due(const StopState& state, const StopTimes& times);

}  // namespace rlock
