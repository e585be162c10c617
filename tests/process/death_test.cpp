// SPDX-License-Identifier: Apache-2.0
// The job is dead in time, whatever happens to the runner or the guardian.
#include "support/job_runner.h"

#include "base/clock.h"
#include "process/process_tree.h"
#include "support/skip.h"

#include <csignal>

#include <doctest/doctest.h>
#include <sched.h>
#include <unistd.h>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

// Two processes that ignore signals: the main process in `main`, its child in `child`.
JobSpec stubborn(const std::filesystem::path& dir)
{
  JobSpec spec = script(dir,
                        "trap '' TERM INT HUP; sh -c 'echo $$ > $0/child; exec sleep 60' $0 & "
                        "until [ -s $0/child ]; do sleep 0.01; done; "
                        "echo $$ > $0/main; while :; do sleep 1; done");
  return spec;
}

RunnerProcess start(const JobSpec& spec, Millis lease)
{
  return RunnerProcess([&spec, lease] {
    JobFixture fixture(stop_times(lease, 200ms, 100ms));
    Job job = fixture.start(spec);
    return follow(job);
  });
}

struct Family {
  pid_t main;
  pid_t child;
  explicit Family(const std::filesystem::path& dir) : main(pid_from(dir / "main")), child(pid_from(dir / "child")) {}
  [[nodiscard]] bool is_dead() const { return !is_alive(main) && !is_alive(child); }
};

// The guardian is the parent of the main process.
pid_t guardian_of(const Family& family)
{
  const auto main = read_process(family.main);
  return main ? main->parent : 0;
}

}  // namespace

JOB_DIR_CASE("death: with the runner that is killed")
{
  const JobSpec spec = stubborn(dir);
  const RunnerProcess runner = start(spec, 60s);
  const Family family(dir);
  REQUIRE(is_alive(family.child));
  const Instant killed = BootClock().now();
  ::kill(runner.pid(), SIGKILL);
  CHECK(wait_until([&] { return family.is_dead(); }));
  CHECK(BootClock().now() - killed < 1s);  // 50 ms are promised; a loaded machine may take longer
}

JOB_DIR_CASE("death: before the lease ends, though the runner is stopped")
{
  const JobSpec spec = stubborn(dir);
  const Instant valid_until = BootClock().now() + 1s;
  const RunnerProcess runner = start(spec, 1s);
  const Family family(dir);
  ::kill(runner.pid(), SIGSTOP);
  CHECK(wait_until([&] { return family.is_dead(); }));
  CHECK(BootClock().now() < valid_until + 20ms);  // the test itself looks every 10 ms
}

JOB_DIR_CASE("death: of the guardian, and the runner takes over")
{
  const std::string result = in_runner([&] {
    const pid_t stranger = ::fork();
    if (stranger == 0) {
      ::pause();
    }
    JobFixture fixture(60s);
    Job job = fixture.start(stubborn(dir));
    const Family family(dir);
    ::kill(guardian_of(family), SIGKILL);
    std::string events = follow(job);
    job.take_over();
    events += family.is_dead() ? "; dead" : "; alive";
    events += is_alive(stranger) ? "; stranger spared" : "; stranger killed";
    ::kill(stranger, SIGKILL);
    return events;
  });
  CHECK(result == "guardian gone; dead; stranger spared");
}

JOB_DIR_CASE("death: of a guardian that hangs")
{
  const std::string result = in_runner([&] {
    JobFixture fixture(60s);
    Job job = fixture.start(stubborn(dir));
    const Family family(dir);
    ::kill(guardian_of(family), SIGSTOP);
    job.take_over();
    return std::string(family.is_dead() ? "dead" : "alive");
  });
  CHECK(result == "dead");
}

JOB_DIR_CASE("death: a Job that goes out of scope takes its processes along")
{
  const std::string result = in_runner([&] {
    JobFixture fixture(60s);
    std::optional<Job> job = fixture.start(stubborn(dir));
    const Family family(dir);
    job.reset();
    return std::string(family.is_dead() ? "dead" : "alive");
  });
  CHECK(result == "dead");
}

JOB_DIR_CASE("death: the guardian survives what service managers send to everybody")
{
  const std::string result = in_runner([&] {
    JobFixture fixture(60s);
    Job job = fixture.start(script(dir,
                                   "trap 'exit 7' TERM; echo $$ > $0/main; echo 1 > $0/child; "
                                   "while :; do sleep 0.02; done"));
    const Family family(dir);
    for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGALRM, SIGUSR1, SIGRTMIN}) {
      ::kill(guardian_of(family), signal);
    }
    ::kill(family.main, SIGTERM);
    return follow(job);
  });
  CHECK(result == "exit 7");
}

// As in a chroot, or in a pid namespace without a /proc of its own: only the process group is known.
JOB_DIR_CASE("death: without a matching /proc the rest of the process group is stopped all the same")
{
  const std::string result = in_runner([&]() -> std::string {
    if (::unshare(CLONE_NEWPID) != 0) {
      return "refused";
    }
    return in_runner([&] {
      JobFixture fixture(60s);
      JobSpec spec = script(dir,
                            "(trap '' TERM; echo ready > $0/ready; while :; do sleep 1; done) & "
                            "echo $! > $0/child; until [ -s $0/ready ]; do sleep 0.01; done");
      spec.kill_after = 50ms;
      Job job = fixture.start(spec);
      const std::string events = follow(job);
      const pid_t left = pid_from(dir / "child");
      return events + (::kill(left, 0) == 0 ? "; still there" : "; gone");
    });
  });
  skip_if(result == "refused", "a pid namespace of one's own is not allowed");
  CHECK(result == "left 1; exit 0 killed; gone");
}
