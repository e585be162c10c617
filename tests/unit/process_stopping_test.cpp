// SPDX-License-Identifier: Apache-2.0
#include "process/stopping.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

constexpr Instant t0{};

// Of a lease of 30 s, KILL half a second before its end.
constexpr StopTimes times{
    .signal = t0 + 25s, .kill = t0 + 29'500ms, .last_resort = t0 + 29'800ms, .lease_end = t0 + 30s};

JobSpec spec_of(Leftovers leftovers, std::optional<Millis> max_runtime)
{
  JobSpec spec;
  spec.kill_after = 2s;
  spec.leftovers = leftovers;
  spec.max_runtime = max_runtime;
  return spec;
}

constexpr Millis no_kill{100s};

StopState in(Phase phase, Stopped why = Stopped::none, Millis kill_at = no_kill)
{
  StopState state;
  state.phase = phase;
  state.why = why;
  if (phase == Phase::lingering) {
    state.left_behind = t0 + settling_time;
  }
  if (phase == Phase::stopping || kill_at != no_kill) {
    state.kill_at = t0 + kill_at;
  }
  return state;
}

const char* name(Phase phase)
{
  const char* const names[] = {"running", "lingering", "stopping", "killing", "over"};
  return names[static_cast<int>(phase)];
}

const char* name(Stopped why)
{
  const char* const names[] = {"none", "lease_end", "max_runtime", "order", "runner_gone"};
  return names[static_cast<int>(why)];
}

const char* name(StopAction act)
{
  const char* const names[] = {"nothing", "signal", "report_leftovers", "stop_leftovers", "report_pipe_holders",
                               "kill",    "finish"};
  return names[static_cast<int>(act)];
}

std::string show(const StopStep& step)
{
  return std::string(name(step.action)) + " -> " + name(step.state.phase) + " " + name(step.state.why);
}

struct Row {
  const char* why;
  StopState state;
  StopEvent event;
  Millis now;
  const char* expect;
};

void check(const JobSpec& spec, const std::vector<Row>& rows)
{
  for (const Row& row : rows) {
    CAPTURE(row.why);
    const StopStep step = next_step(spec, row.state, row.event, t0 + row.now, times);
    CHECK(show(step) == row.expect);
  }
}

}  // namespace

TEST_CASE("stopping: while the job runs on a 30 s lease")
{
  const JobSpec spec = spec_of(Leftovers::stop, std::nullopt);
  const StopState running = in(Phase::running);
  check(spec, {{"nothing is due", running, TimePassed{}, 24999ms, "nothing -> running none"},
               {"the deadline, in time", running, TimePassed{}, 25s, "signal -> stopping lease_end"},
               {"woken with no time to ask", running, TimePassed{}, 29500ms, "kill -> killing lease_end"},
               {"woken from suspend", running, TimePassed{}, 1h, "kill -> killing lease_end"},
               {"asked to stop", running, StopOrder{5s}, 1s, "signal -> stopping order"},
               {"asked without patience", running, StopOrder{0s}, 1s, "kill -> killing order"},
               {"asked on a dead lease", running, StopOrder{5s}, 31s, "kill -> killing order"},
               {"ended, no process left", running, MainEnded{Others::none}, 1s, "finish -> over none"},
               {"ended, some left", running, MainEnded{Others::some}, 1s, "nothing -> lingering none"},
               {"the runner died", running, RunnerGone{}, 1s, "kill -> killing runner_gone"}});
}

TEST_CASE("stopping: once it is under way")
{
  const JobSpec spec = spec_of(Leftovers::stop, 10s);
  const StopState ordered = in(Phase::stopping, Stopped::order, 8s);
  const StopState late = in(Phase::stopping, Stopped::lease_end, 40s);
  const StopState killing = in(Phase::killing, Stopped::order);
  check(spec, {{"the signal has time to act", ordered, TimePassed{}, 7999ms, "nothing -> stopping order"},
               {"it has not helped", ordered, TimePassed{}, 8s, "kill -> killing order"},
               {"the deadline comes first", late, TimePassed{}, 29500ms, "kill -> killing lease_end"},
               {"a second reason is none", late, StopOrder{2s}, 26s, "nothing -> stopping lease_end"},
               {"it may hasten", ordered, StopOrder{0s}, 1s, "kill -> killing order"},
               {"only the main one ended", ordered, MainEnded{Others::some}, 7s, "nothing -> stopping order"},
               {"all ended", ordered, MainEnded{Others::none}, 7s, "finish -> over order"},
               {"the others ended", ordered, TreeEmpty{}, 7s, "finish -> over order"},
               {"the runner died meanwhile", ordered, RunnerGone{}, 7s, "kill -> killing order"},
               {"max_runtime no longer counts", in(Phase::stopping, Stopped::order, 20s), TimePassed{}, 12s,
                "nothing -> stopping order"},
               {"killing is not interrupted", killing, StopOrder{0s}, 9s, "nothing -> killing order"},
               {"nor begun twice", killing, RunnerGone{}, 9s, "nothing -> killing order"},
               {"killed", killing, TreeEmpty{}, 9s, "finish -> over order"},
               {"over is over", in(Phase::over), RunnerGone{}, 9s, "nothing -> over none"}});
}

TEST_CASE("stopping: a second order hastens, and never delays")
{
  const JobSpec spec = spec_of(Leftovers::stop, std::nullopt);
  const StopState ordered = in(Phase::stopping, Stopped::order, 8s);
  CHECK(next_step(spec, ordered, StopOrder{1s}, t0 + 2s, times).state.kill_at == t0 + 3s);
  CHECK(next_step(spec, ordered, StopOrder{20s}, t0 + 2s, times).state.kill_at == t0 + 8s);
}

TEST_CASE("stopping: KILL after a signal of the user")
{
  const JobSpec spec = spec_of(Leftovers::wait, 10s);
  const StopState running = in(Phase::running);
  const StopState signalled = in(Phase::running, Stopped::none, 3s);
  const StopState lingering = in(Phase::lingering, Stopped::none, 3s);
  check(spec, {{"the job may end by itself", running, KillOrder{3s}, 1s, "nothing -> running none"},
               {"at once", running, KillOrder{0s}, 1s, "kill -> killing none"},
               {"not yet", signalled, TimePassed{}, 2999ms, "nothing -> running none"},
               {"now", signalled, TimePassed{}, 3s, "kill -> killing none"},
               {"it ended in time", signalled, MainEnded{Others::none}, 2s, "finish -> over none"},
               {"what it left is killed, too", signalled, MainEnded{Others::some}, 2s, "nothing -> lingering none"},
               {"then", lingering, TimePassed{}, 3s, "kill -> killing none"},
               {"a loss is a reason of its own", signalled, StopOrder{1s}, 1s, "signal -> stopping order"},
               {"no later than a stop", in(Phase::stopping, Stopped::order, 8s), KillOrder{9s}, 1s,
                "nothing -> stopping order"},
               {"but earlier", in(Phase::stopping, Stopped::order, 8s), KillOrder{0s}, 1s, "kill -> killing order"},
               {"not twice", in(Phase::killing), KillOrder{0s}, 1s, "nothing -> killing none"}});
  CHECK(next_step(spec, running, KillOrder{3s}, t0 + 1s, times).state.kill_at == t0 + 4s);
  CHECK(next_step(spec, signalled, KillOrder{3s}, t0 + 1s, times).state.kill_at == t0 + 3s);
  CHECK(next_due(signalled, times) == t0 + 3s);
}

TEST_CASE("stopping: what the main process leaves")
{
  const StopState lingering = in(Phase::lingering);
  const Millis settled = settling_time;
  check(spec_of(Leftovers::stop, std::nullopt),
        {{"it may yet daemonize", lingering, TimePassed{}, settled - 1ms, "nothing -> lingering none"},
         {"it has not", lingering, TimePassed{}, settled, "stop_leftovers -> stopping none"},
         {"it ended by itself", lingering, TreeEmpty{}, 1ms, "finish -> over none"},
         {"an order changes no reason", lingering, StopOrder{2s}, 1ms, "signal -> stopping none"},
         {"the deadline neither", lingering, TimePassed{}, 25s, "signal -> stopping none"},
         {"killed with the runner", lingering, RunnerGone{}, 1ms, "kill -> killing none"}});

  StopState waiting = lingering;
  waiting.left_behind = far_future;
  check(spec_of(Leftovers::wait, std::nullopt),
        {{"told once", lingering, TimePassed{}, settled, "report_leftovers -> lingering none"},
         {"and then waited for", waiting, TimePassed{}, 20s, "nothing -> lingering none"},
         {"as long as the lease", waiting, TimePassed{}, 25s, "signal -> stopping lease_end"},
         {"or until told otherwise", waiting, StopOrder{2s}, 1s, "signal -> stopping order"},
         {"waited for with success", waiting, TreeEmpty{}, 1s, "finish -> over none"}});

  check(spec_of(Leftovers::leave, std::nullopt),
        {{"left alone", in(Phase::running), MainEnded{Others::some}, 1s, "finish -> over none"},
         {"not while it is being stopped", in(Phase::stopping, Stopped::lease_end, 8s), MainEnded{Others::some}, 1s,
          "nothing -> stopping lease_end"}});

  check(spec_of(Leftovers::until_pipe_closes, std::nullopt),
        {{"told at once", in(Phase::running), MainEnded{Others::some}, 1s, "report_pipe_holders -> lingering none"},
         {"no process is left", in(Phase::running), MainEnded{Others::none}, 1s, "finish -> over none"},
         {"guarded", waiting, TimePassed{}, 24999ms, "nothing -> lingering none"},
         {"as long as the lease", waiting, TimePassed{}, 25s, "signal -> stopping lease_end"},
         {"stopped when it is lost", waiting, StopOrder{2s}, 1s, "signal -> stopping order"},
         {"killed with the keeper", waiting, RunnerGone{}, 1s, "kill -> killing runner_gone"},
         {"left alone when the pipe closes", waiting, LeaveProcesses{}, 1s, "finish -> over none"},
         {"not while it is being stopped", in(Phase::stopping, Stopped::order, 8s), LeaveProcesses{}, 1s,
          "nothing -> stopping order"}});
}

TEST_CASE("stopping: max_runtime counts from the start")
{
  const JobSpec spec = spec_of(Leftovers::stop, 10s);
  const StopState state = started(spec, t0 + 1s);
  check(spec, {{"not yet", state, TimePassed{}, 10999ms, "nothing -> running none"},
               {"now", state, TimePassed{}, 11s, "signal -> stopping max_runtime"},
               {"the deadline says it first", state, TimePassed{}, 25s, "signal -> stopping lease_end"}});
}

TEST_CASE("stopping: when to look next")
{
  const JobSpec spec = spec_of(Leftovers::stop, 10s);
  CHECK(next_due(started(spec, t0), times) == t0 + 10s);
  CHECK(next_due(in(Phase::running), times) == t0 + 25s);
  CHECK(next_due(in(Phase::lingering), times) == t0 + settling_time);
  CHECK(next_due(in(Phase::stopping, Stopped::order, 8s), times) == t0 + 8s);
  CHECK(next_due(in(Phase::stopping, Stopped::order, 40s), times) == t0 + 29500ms);
  CHECK(next_due(in(Phase::over), times) == far_future);

  SUBCASE("a renewal does not save a job that is being stopped, but gives it its time")
  {
    const StopState state = next_step(spec, in(Phase::running), TimePassed{}, t0 + 28s, times).state;
    CHECK(next_due(state, times) == t0 + 29500ms);
    CHECK(next_due(state, never_stopped) == t0 + 30s);
  }
}

TEST_CASE("stopping: the start gate")
{
  CHECK(may_start(t0, times));
  CHECK(may_start(t0, never_stopped));
  CHECK_FALSE(may_start(t0 + 25s, times));
  CHECK_FALSE(may_start(t0 + 25s - shortest_run, times));
}
