// SPDX-License-Identifier: Apache-2.0
// Stopping a running job, and the processes that its main process leaves.
#include "support/job_runner.h"

#include "base/clock.h"
#include "support/integration.h"

using namespace rlock::test;

namespace {

// Starts the script, waits for its file `ready`, calls `act`, and describes the end.
std::string result_of(const std::filesystem::path& dir, const JobSpec& spec, const std::function<void(Job&)>& act)
{
  return in_runner([&] {
    JobFixture fixture(60s);
    Job job = fixture.start(spec);
    wait_until([&] { return !text_of(dir / "ready").empty(); });
    act(job);
    return follow(job);
  });
}

}  // namespace

JOB_DIR_CASE("stop: the signal is enough for most")
{
  JobSpec spec = script(dir, "echo 1 > $0/ready; exec sleep 60");
  CHECK(result_of(dir, spec, [](Job& job) { job.stop(5s); }) == "died of TERM by order");
  spec.stop_signal = SIGINT;
  CHECK(result_of(dir, spec, [](Job& job) { job.stop(5s); }) == "died of INT by order");
}

JOB_DIR_CASE("stop: a job that is stopped acts on it")
{
  const JobSpec spec = script(dir, "echo $$ > $0/ready; exec sleep 60");
  const std::string result = result_of(dir, spec, [&](Job& job) {
    ::kill(pid_from(dir / "ready"), SIGSTOP);
    job.stop(5s);
  });
  CHECK(result == "died of TERM by order");
}

JOB_DIR_CASE("stop: a grandchild that ignores the signal is dead when the job has ended")
{
  const JobSpec spec = script(dir,
                              "(trap '' TERM; sh -c 'echo $$ > $0/pid; exec sleep 60' $0) & "
                              "trap 'exit 4' TERM; "
                              "until [ -s $0/pid ]; do sleep 0.01; done; echo 1 > $0/ready; wait");
  const std::string result = in_runner([&] {
    JobFixture fixture(60s);
    Job job = fixture.start(spec);
    wait_until([&] { return !text_of(dir / "ready").empty(); });
    job.stop(100ms);
    const std::string events = follow(job);
    return events + (is_alive(pid_from(dir / "pid")) ? "; alive" : "");
  });
  CHECK(result == "exit 4 by order killed");
}

JOB_DIR_CASE("stop: a daemon is never touched")
{
  const JobSpec spec = script(dir,
                              "(setsid sh -c 'echo $$ > $0/pid; exec sleep 60' $0 &); "
                              "until [ -s $0/pid ]; do sleep 0.01; done; "
                              "echo 1 > $0/ready; sleep 60");
  const std::string result = result_of(dir, spec, [](Job& job) { job.stop(5s); });
  const pid_t daemon = pid_from(dir / "pid");
  CHECK(result == "died of TERM by order");
  CHECK(is_alive(daemon));
  ::kill(daemon, SIGKILL);
}

JOB_DIR_CASE("stop: a second order hastens")
{
  const JobSpec spec = script(dir, "trap '' TERM; echo 1 > $0/ready; while :; do sleep 0.05; done");
  const std::string result = result_of(dir, spec, [](Job& job) {
    job.stop(60s);
    job.stop(50ms);
  });
  CHECK(result == "died of KILL by order killed");
}

JOB_DIR_CASE("forward: the job's own affair")
{
  const JobSpec spec = script(dir,
                              "exec 2> /dev/null; trap 'exit 5' USR1; echo 1 > $0/ready; "
                              "while :; do sleep 0.02; done");
  CHECK(result_of(dir, spec, [](Job& job) { job.forward(SIGUSR1); }) == "exit 5");
}

JOB_DIR_CASE("leftovers")
{
  JobSpec spec = script(dir, "sleep 2 & exit 6");
  spec.kill_after = 5s;
  SUBCASE("are stopped") { CHECK(run(spec) == "left 1; exit 6"); }
  SUBCASE("are waited for")
  {
    spec.leftovers = Leftovers::wait;
    CHECK(run(spec) == "left 1; exit 6");
  }
  SUBCASE("are left alone")
  {
    spec = script(dir, "sh -c 'echo $$ > $0/pid; exec sleep 60' $0 & exit 6");
    spec.leftovers = Leftovers::leave;
    CHECK(run(spec) == "exit 6");
    const pid_t left = pid_from(dir / "pid");
    CHECK(is_alive(left));
    ::kill(left, SIGKILL);
  }
  SUBCASE("are told of as long as one has what it inherited")
  {
    spec = script(dir, "(until [ -e $0/go ]; do sleep 0.02; done) & exit 6");
    spec.leftovers = Leftovers::until_pipe_closes;
    const auto watched = [&](Job& job) {
      const std::string command = await(job);
      const bool before = job.pipe_is_held();
      std::ofstream(dir / "go");
      const std::string end = await(job);
      return command + "; " + end + (before && !job.pipe_is_held() ? "; and none" : "");
    };
    CHECK(in_runner([&] {
            JobFixture fixture(60s);
            Job job = fixture.start(spec);
            return watched(job);
          }) == "lives on after " + std::to_string(6 << 8) + "; exit 6; and none");
  }
  SUBCASE("that end at once are no leftovers")
  {
    // Often: a busy machine may let the sleep run too late.
    CHECK(wait_until([&] { return run(script(dir, "sleep 0.005 & exit 6")) == "exit 6"; }));
  }
  SUBCASE("that do not listen are killed")
  {
    spec = script(dir,
                  "(trap '' TERM; echo 1 > $0/up; sleep 60) & "
                  "until [ -s $0/up ]; do sleep 0.01; done; exit 6");
    spec.kill_after = 50ms;
    CHECK(run(spec) == "left 1; exit 6 killed");
  }
}

JOB_DIR_CASE("leftovers: a daemon that is about to be one is no leftover")
{
  CHECK(run(script(dir, "setsid sh -c 'echo $$ > $0/pid; exec sleep 60' $0 & exit 6")) == "exit 6");
  const pid_t daemon = pid_from(dir / "pid");
  CHECK(is_alive(daemon));
  ::kill(daemon, SIGKILL);
}

JOB_DIR_CASE("max_runtime: stopped, and killed when that does not help")
{
  JobSpec spec = script(dir, "exec sleep 60");
  spec.max_runtime = 50ms;
  CHECK(run(spec) == "died of TERM by max_runtime");
  spec = script(dir, "trap '' TERM; while :; do sleep 0.02; done");
  spec.max_runtime = 50ms;
  spec.kill_after = 50ms;
  CHECK(run(spec) == "died of KILL by max_runtime killed");
}

JOB_DIR_CASE("deadline: stopped in time")
{
  JobSpec spec = script(dir, "exec sleep 60");
  CHECK(run(spec, stop_times(500ms, 300ms, 100ms)) == "died of TERM by lease_end");
  spec = script(dir, "trap '' TERM; while :; do sleep 0.02; done");
  CHECK(run(spec, stop_times(500ms, 300ms, 100ms)) == "died of KILL by lease_end killed");
}

JOB_DIR_CASE("deadline: a job that is renewed lives on")
{
  JobSpec spec = script(dir, "echo 1 > $0/ready; sleep 0.5; exit 8");
  const std::string result = in_runner([&] {
    JobFixture fixture(stop_times(400ms, 200ms, 100ms));
    Job job = fixture.start(spec);
    wait_until([&] { return !text_of(dir / "ready").empty(); });
    fixture.shared_deadline.move_to(never_stopped);
    return follow(job);
  });
  CHECK(result == "exit 8");
}
