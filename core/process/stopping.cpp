// SPDX-License-Identifier: Apache-2.0
#include "process/stopping.h"

#include <algorithm>

namespace rlock {
namespace {

// KILL never comes later than the shared deadline allows, whatever the reason for stopping.
Instant kill_due(const StopState& state, const StopTimes& times) { return std::min(state.kill_at, times.kill); }

struct StopDecision {
  const JobSpec& spec;
  StopState state;
  Instant now;
  StopTimes times;

  [[nodiscard]] bool is_not_stopped() const { return state.phase == Phase::running || state.phase == Phase::lingering; }

  // The first reason counts. What a job that ended by itself left behind is stopped for no further reason, unless the
  // guardian was to wait for it.
  void set_reason(Stopped reason)
  {
    const bool stopped_anyway = state.phase == Phase::lingering && spec.leftovers == Leftovers::stop;
    if (is_not_stopped() && !stopped_anyway) {
      state.why = reason;
    }
  }

  StopStep kill()
  {
    state.phase = Phase::killing;
    state.killed = true;
    return {state, StopAction::kill};
  }

  StopStep finish()
  {
    state.phase = Phase::over;
    return {state, StopAction::finish};
  }

  StopStep stop(Millis kill_after, StopAction action)
  {
    state.kill_at = std::min(state.kill_at, now + kill_after);
    if (kill_due(state, times) <= now) {
      return kill();
    }
    state.phase = Phase::stopping;
    return {state, action};
  }

  StopStep left_behind()
  {
    if (spec.leftovers == Leftovers::stop) {
      return stop(spec.kill_after, StopAction::stop_leftovers);
    }
    state.left_behind = far_future;
    return {state, StopAction::report_leftovers};
  }

  StopStep operator()(const StopOrder& order)
  {
    set_reason(Stopped::order);
    return stop(order.kill_after, is_not_stopped() ? StopAction::signal : StopAction::nothing);
  }

  StopStep operator()(const KillOrder& order)
  {
    state.kill_at = std::min(state.kill_at, now + order.after);
    return kill_due(state, times) <= now ? kill() : StopStep{state};
  }

  StopStep operator()(const MainEnded& ended)
  {
    if (ended.others == Others::none) {
      return finish();
    }
    if (!is_not_stopped()) {
      return {state};
    }
    if (spec.leftovers == Leftovers::leave) {
      return finish();
    }
    state.phase = Phase::lingering;
    if (spec.leftovers == Leftovers::until_pipe_closes) {
      return {state, StopAction::report_pipe_holders};
    }
    state.left_behind = now + settling_time;
    return {state};
  }

  StopStep operator()(const LeaveProcesses&)
  {
    return state.phase == Phase::lingering || state.phase == Phase::killing ? finish() : StopStep{state};
  }

  StopStep operator()(const TreeEmpty&) { return finish(); }

  StopStep operator()(const RunnerGone&)
  {
    set_reason(Stopped::runner_gone);
    return kill();
  }

  StopStep operator()(const TimePassed&)
  {
    if (now < next_due(state, times)) {
      return {state};
    }
    if (state.phase == Phase::stopping || now >= state.kill_at) {
      return kill();
    }
    if (now >= times.signal) {
      set_reason(Stopped::lease_end);
      return stop(spec.kill_after, StopAction::signal);
    }
    if (now >= state.time_over) {
      set_reason(Stopped::max_runtime);
      return stop(spec.kill_after, StopAction::signal);
    }
    return left_behind();
  }
};

}  // namespace

bool may_start(Instant now, const StopTimes& times) { return now < times.signal - shortest_run; }

StopState started(const JobSpec& spec, Instant now)
{
  StopState state;
  if (spec.max_runtime) {
    state.time_over = now + *spec.max_runtime;
  }
  return state;
}

StopStep next_step(const JobSpec& spec, const StopState& state, const StopEvent& event, Instant now,
                   const StopTimes& times)
{
  if (state.phase == Phase::over) {
    return {state};
  }
  const bool ends_killing = std::holds_alternative<TreeEmpty>(event) || std::holds_alternative<LeaveProcesses>(event);
  if (state.phase == Phase::killing && !ends_killing) {
    return {state};
  }
  return std::visit(StopDecision{spec, state, now, times}, event);
}

Instant next_due(const StopState& state, const StopTimes& times)
{
  switch (state.phase) {
    case Phase::running:
    case Phase::lingering: return std::min({times.signal, state.time_over, state.left_behind, state.kill_at});
    case Phase::stopping: return kill_due(state, times);
    case Phase::killing:
    case Phase::over: break;
  }
  return far_future;
}

}  // namespace rlock
