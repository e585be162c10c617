// SPDX-License-Identifier: Apache-2.0
// A waiter whose prepared processes are killed prepares others, and runs its job.
#include "process/proc.h"
#include "support/job_runner.h"
#include "support/queue_fixture.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <csignal>
#include <string>
#include <vector>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

// 0: none.
pid_t child_of(pid_t parent)
{
  for (const int pid : numbers_in("/proc")) {
    const auto stat = read_process(pid);
    if (stat && stat->parent == parent && !stat->is_zombie()) {
      return pid;
    }
  }
  return 0;
}

struct Prepared {
  pid_t guardian = 0;
  pid_t gate = 0;
};

Prepared prepared_by(pid_t waiter)
{
  Prepared found;
  rlock::test::wait_until(
      [&] {
        found.guardian = child_of(waiter);
        found.gate = found.guardian == 0 ? 0 : child_of(found.guardian);
        return found.gate != 0;
      },
      "the waiter has prepared its job", 20s);
  return found;
}

}  // namespace

TEST_CASE("prepared: a waiter whose prepared process or guardian is killed runs its job when its turn comes")
{
  for (const bool kill_guardian : {false, true}) {
    CAPTURE(kill_guardian);
    QueueFixture queue;
    rlock::test::Process holder = queue.hold("30s");
    queue.add_waiter();
    rlock::test::Process& waiter = queue.waiters.front();
    const Prepared prepared = prepared_by(waiter.pid());
    ::kill(kill_guardian ? prepared.guardian : prepared.gate, SIGKILL);
    rlock::test::wait_until([&] { return !is_alive(prepared.gate) && !is_alive(prepared.guardian); }, "both are gone");
    holder.signal(SIGTERM);
    CHECK(waiter.wait(20s) == Exit{.code = 0, .signal = 0});
    CHECK(waiter.err() == "");
    CHECK(queue.started_jobs() == std::vector{0});
  }
}

TEST_CASE("prepared: a process that is killed at the gate is told apart from a job that is killed")
{
  const auto dir = make_temp_dir("job");
  const std::string result = in_runner([&] {
    JobFixture fixture(60s);
    auto job = Job::prepare(script(dir, "touch $0/ran"), fixture.signals, fixture.shared_deadline);
    const Prepared prepared = prepared_by(::getpid());
    ::kill(prepared.gate, SIGKILL);
    const std::string events = await(*job);
    job->take_over();
    return events + (child_of(::getpid()) == 0 ? "; none left" : "; some left");
  });
  CHECK(result == "gate killed; none left");
  CHECK_FALSE(std::filesystem::exists(dir / "ran"));
}
