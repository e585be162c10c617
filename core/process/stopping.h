// SPDX-License-Identifier: Apache-2.0
// When the guardian stops the job, how, and why: decisions only, so that every unlucky schedule is
// a row in a table.
#pragma once

#include "base/clock.h"
#include "process/job.h"

#include <variant>

namespace rlock {

enum class Phase {
  running,    // the main process lives
  lingering,  // it ended by itself, others of the job are still there
  stopping,   // the stop signal was sent
  killing,    // KILL is being sent until nothing is left
  over,
};

struct StopState {
  Phase phase = Phase::running;
  Stopped why = Stopped::none;
  bool killed = false;
  Instant time_over = far_future;    // the end of max_runtime
  Instant left_behind = far_future;  // lingering: when what is still there counts as left behind
  Instant kill_at = far_future;      // stopping; the lifeline may want it sooner
};

// What was about to daemonize or to end when the main process ended needs a moment for it.
constexpr Millis settling_time{50};

// What a job is given at least before it is to be stopped again.
constexpr Millis shortest_run{10};

struct StopOrder {
  Millis kill_after;
};
enum class Others { none, some };
struct MainEnded {
  Others others;
};
struct LeaveProcesses {};  // who is left is to be let alone
struct TreeEmpty {};       // and the main process is reaped
struct RunnerGone {};
struct TimePassed {};
using StopEvent = std::variant<StopOrder, MainEnded, LeaveProcesses, TreeEmpty, RunnerGone, TimePassed>;

enum class StopAction {
  nothing,
  signal,  // the stop signal, and CONT for what is stopped
  report_leftovers,
  stop_leftovers,  // both of the above
  report_pipe_holders,
  kill,  // until nothing is left, then tell: TreeEmpty
  finish,
};

struct StopStep {
  StopState state;
  StopAction act = StopAction::nothing;
};

// The start gate: whether a job may begin on this lease.
bool may_start(const JobSpec& spec, Instant now, Instant valid_until);

StopState started(const JobSpec& spec, Instant now);

StopStep next_step(const JobSpec& spec, const StopState& state, const StopEvent& event, Instant now,
                   Instant valid_until);

// When TimePassed will mean something if nothing else happens and the lifeline stays where it is.
Instant next_look(const JobSpec& spec, const StopState& state, Instant valid_until);

}  // namespace rlock
