// SPDX-License-Identifier: Apache-2.0
// A waiter whose prepared processes are killed prepares others, and runs its job.
#include "process/process_tree.h"
#include "support/integration.h"
#include "support/job_runner.h"
#include "support/queue_fixture.h"
#include "support/relay.h"

using namespace rlock::test;

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

// With those that have ended and were not waited for.
int count_children(pid_t parent)
{
  int count = 0;
  for (const int pid : numbers_in("/proc")) {
    const auto stat = read_process(pid);
    count += stat && stat->parent == parent ? 1 : 0;
  }
  return count;
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

TEST_CASE("prepared: a waiter whose prepared process or guardian is killed prepares another one, and runs its job")
{
  struct Row {
    bool hits_guardian;
    int signal;
  };
  for (const Row& row : {Row{true, SIGKILL}, Row{false, SIGKILL}, Row{false, SIGTERM}, Row{false, SIGINT},
                         Row{false, SIGHUP}, Row{false, SIGQUIT}, Row{false, SIGUSR1}, Row{false, SIGPIPE}}) {
    CAPTURE(row.hits_guardian);
    CAPTURE(row.signal);
    QueueFixture queue;
    rlock::test::Process holder = queue.hold("30s");
    queue.add_waiter();
    rlock::test::Process& waiter = queue.waiters.front();
    const Prepared prepared = prepared_by(waiter.pid());
    ::kill(row.hits_guardian ? prepared.guardian : prepared.gate, row.signal);
    rlock::test::wait_until([&] { return !is_alive(prepared.gate); }, "it is gone");
    if (row.signal == SIGKILL) {
      rlock::test::wait_until([&] { return !is_alive(prepared.guardian); }, "its guardian is gone, too");
    }
    CHECK(waiter.running());
    holder.signal(SIGTERM);
    CHECK(waiter.wait(20s) == success);
    CHECK(waiter.complaints() == "");
    CHECK(queue.started_jobs() == std::vector{0});
  }
}

SERVER_CASE("prepared: the lock of a run that was killed before it learned of its grant is released by its guardian")
{
  REQUIRE(rlock_on(server, {"run", "-k", "other", "--", "true"}).code == 0);  // it knows the script
  Relay relay(server);
  relay.hold_next("stock");
  rlock::test::Process killed = rlock::test::start_rlock({"run", "-S", relay.url(), "-k", "stock", "--", "true"});
  rlock::test::wait_until([&] { return relay.holds(); }, "it asks");
  prepared_by(killed.pid());
  killed.signal(SIGSTOP);
  relay.deliver();
  CHECK(is_held(server, "stock"));
  killed.signal(SIGKILL);
  rlock::test::wait_until([&] { return as_int(server.command({"EXISTS", "stock"})) == 0; }, "the lock is free", 20s);
  CHECK(rlock_on(server, {"history", "stock"}).code == 1);  // no job has begun
}

QUEUE_CASE("prepared: the first waiter in line leaves the queue when it is killed")
{
  rlock::test::Process holder = queue.hold("30s");
  queue.add_waiter();
  queue.await_subscriptions();  // the answer to the first request has come, so what was prepared for it is discarded
  prepared_by(queue.waiters.front().pid());
  queue.waiters.front().signal(SIGKILL);
  rlock::test::wait_until(
      [&] {
        return as_int(queue.server.command({"ZCARD", "rlock:queue:{k}"})) == 0;
      },
      "its guardian has left the queue", 20s);
  CHECK(holder.running());
}

QUEUE_CASE("prepared: only the first waiter in line keeps what it prepared")
{
  const rlock::test::Process holder = queue.hold("30s");
  queue.add_waiter();
  queue.add_waiter();
  queue.await_subscriptions();  // the answer to the first request has come
  prepared_by(queue.waiters.front().pid());
  rlock::test::wait_until([&] { return count_children(queue.waiters.back().pid()) == 0; },
                          "the second waiter has no child");
}

TEST_CASE("prepared: a server that answers after the last resort leaves the runner one child, the guardian of its job")
{
  const RedisServer server({.alone = true});
  const auto dir = make_temp_dir("job");
  server.command({"PING"});
  const auto url = server.direct_url();
  ::kill(server.pid(), SIGSTOP);
  rlock::test::Process rlock =
      rlock::test::start_rlock({"run", "-S", url, "-k", "stock", "--ttl", "1s", "--server-timeout", "60s", "--", "sh",
                                "-c", "echo $$ >$0/main; exec sleep 300", dir});
  const Prepared prepared = prepared_by(rlock.pid());
  rlock::test::wait_until([&] { return !is_alive(prepared.guardian); }, "the timer has killed the guardian");
  ::kill(server.pid(), SIGCONT);
  const pid_t job = pid_from(dir / "main");
  CHECK(count_children(rlock.pid()) == 1);
  ::kill(job, SIGKILL);
  rlock.wait(20s);
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
