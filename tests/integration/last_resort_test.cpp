// SPDX-License-Identifier: Apache-2.0
// When runner, guardian or both are killed or stopped: the job ends, by the guardian or by the kernel, and what becomes of its
// lock.
#include "support/stubborn_holder.h"
#include "support/terminal.h"

#include <memory>

#include <unistd.h>

using namespace rlock::test;

namespace {

std::vector<Invocation> invocations(const std::string& suffix = "")
{
  return {{{"run", "-k", "plain" + suffix}, "plain" + suffix},
          {{"run", "-x", "-k", "rw" + suffix}, "rw" + suffix},
          {{"run", "-k", "a" + suffix, "-k", "b" + suffix, "-k", "c" + suffix}, "a" + suffix},
          {{"flock", "file" + suffix}, "file" + suffix}};
}

using Holder = StubbornHolder;

}  // namespace

SERVER_CASE("last resort: the job dies with runner and guardian when both are killed")
{
  for (int round = 0; round < 3; ++round) {
    for (const Invocation& invocation : invocations(std::to_string(round))) {
      CAPTURE(invocation.key);
      CAPTURE(round);
      Holder holder(server, invocation, {"--ttl", "60s"});
      holder.await_job();
      const bool guardian_first = round % 2 == 0;
      ::kill(guardian_first ? holder.guardian() : holder.runner(), SIGKILL);
      ::kill(guardian_first ? holder.runner() : holder.guardian(), SIGKILL);
      wait_until([&] { return holder.job_is_dead(); }, "the job is dead", 30s);
    }
  }
}

SERVER_CASE("last resort: the job is dead before its lock expires, whichever of runner and guardian is stopped")
{
  std::vector<std::unique_ptr<Holder>> holders;
  const Words who{"runner", "guardian", "both"};
  for (const std::string& stopped : who) {
    for (const Invocation& invocation : invocations("-" + stopped)) {
      holders.push_back(std::make_unique<Holder>(server, invocation, Words{"--ttl", "5s"}));
    }
  }
  for (auto& holder : holders) {
    holder->await_job();
  }
  for (auto& holder : holders) {
    if (!holder->key().ends_with("guardian")) {
      holder->process().signal(SIGSTOP);
    }
    if (!holder->key().ends_with("runner")) {
      ::kill(holder->guardian(), SIGSTOP);
    }
  }
  std::vector<Holder*> alive;
  for (auto& holder : holders) {
    alive.push_back(holder.get());
  }
  while (!alive.empty()) {
    std::erase_if(alive, [&](Holder* holder) {
      const bool was_held = holder->has_lock();
      CAPTURE(holder->key());
      REQUIRE((holder->job_is_dead() || was_held));
      return holder->job_is_dead();
    });
    std::this_thread::sleep_for(5ms);
  }
}

TEST_CASE("last resort: what the system refuses of it is told when the job starts")
{
  const RedisServer server{{.alone = true}};  // several servers need more descriptors
  const std::string begin = "rlock: the kernel will not kill the job when rlock and its guardian process are both ";
  const std::string no_timer = "no timer: Resource temporarily unavailable, see ulimit -i";
  const std::string no_pipe = "no pipe: Too many open files, see ulimit -n";
  const auto told = [&](const Words& limits, const Words& rlock, const Words& job) {
    const Words all = joined(joined({"prlimit"}, limits), joined(rlock_argv(rlock), job));
    Process process(all);
    CHECK(process.wait() == exited(3));
    return process.err();
  };
  const Words job{"sh", "-c", "exit 3"};
  for (const Invocation& invocation : invocations()) {
    CAPTURE(invocation.key);
    if (invocation.words.front() == "flock") {
      continue;  // as silent as flock(1)
    }
    const Words words = joined(invocation.words, {"-S", server.url(), "--"});
    CHECK(told({"--sigpending=0"}, words, job) == begin + "stopped: " + no_timer + "\n");
    CHECK(told({"--nofile=24"}, words, job).empty());
    CHECK(told({"--nofile=20"}, words, job) == begin + "killed: " + no_pipe + "\n");
    CHECK(told({"--sigpending=0", "--nofile=20"}, words, job) ==
          begin + "stopped or killed: " + no_timer + "; " + no_pipe + "\n");
  }
  const Words run{"run", "-S", server.url(), "-k", "stock"};
  CHECK(told({"--sigpending=0"}, joined(run, {"-q", "--"}), job).empty());
  CHECK(told({"--sigpending=0"}, joined(run, {"--on-lost", "warn", "--"}), job).empty());  // no lease stops this job
  CHECK(has(told({"--sigpending=0"}, {"flock", "--verbose", "-S", server.url(), "stock"}, job), no_timer));
  CHECK(
      has(told({"--sigpending=0"}, joined(run, {"--log-format", "json", "--"}), job), "\"event\":\"no_last_resort\""));
}

SERVER_CASE("last resort: what --leftovers leave leaves lives on when rlock has ended")
{
  const auto dir = make_temp_dir("job");
  Process rlock = start_on(server, {"run", "-k", "stock", "--leftovers", "leave", "--", "sh", "-c",
                                    "sleep 300 & echo $! >$0/left; ps -o ppid= -p $$ >$0/guardian", dir});
  CHECK(rlock.wait() == success);
  const pid_t left = pid_from(dir / "left");
  const pid_t guardian = pid_from(dir / "guardian");
  wait_until([&] { return !is_alive(guardian); }, "the guardian has ended");
  CHECK(is_alive(left));
  ::kill(left, SIGKILL);
}

TEST_CASE("last resort: the job is dead before its lock expires when runner and guardian are stopped just as it starts")
{
  constexpr int tries = 24;  // the ttl leaves a killed job half a second to die: that much a busy machine may need
  const RedisServer server;
  const auto dir = make_temp_dir("start");
  std::vector<std::unique_ptr<Process>> runs;
  for (int i = 0; i < tries; ++i) {
    const std::string name = "k" + std::to_string(i);
    runs.push_back(std::make_unique<Process>(
        rlock_argv({"run", "-S", server.url(), "-k", name, "--ttl", "10s", "--", "sh", "-c",
                    "echo $$ >" + (dir / name).string() + "; trap '' TERM; while :; do sleep 0.05; done"})));
    const pid_t runner = runs.back()->pid();
    pid_t guardian = 0;
    wait_until([&] { return (guardian = find_guardian(runner)) > 0; }, "there is a guardian", 30s);
    std::this_thread::sleep_for(std::chrono::microseconds(250 * i));  // another time of the start in each round
    ::kill(runner, SIGSTOP);
    ::kill(guardian, SIGSTOP);
  }
  const auto expired = [&](int i) { return as_int(server.command({"EXISTS", "k" + std::to_string(i)})) == 0; };
  for (int i = 0; i < tries; ++i) {
    CAPTURE(i);
    wait_until([&] { return expired(i); }, "the lock has expired", 30s);
    pid_t job = 0;
    std::ifstream(dir / ("k" + std::to_string(i))) >> job;
    const bool lives_on = job > 0 && is_alive(job);
    CHECK(!lives_on);
    if (lives_on) {
      ::kill(job, SIGKILL);
    }
    const Process& rlock = *runs[static_cast<std::size_t>(i)];
    if (const pid_t stopped = find_guardian(rlock.pid()); stopped > 0) {
      ::kill(stopped, SIGKILL);  // stopped before it had a job, it would stay so
    }
    rlock.signal(SIGKILL);
  }
}

SERVER_CASE("last resort: no KILL after the lease, also with --kill-after 0")
{
  const auto dir = make_temp_dir("job");
  const Instant started = BootClock().now();
  Process rlock = start_on(server, {"run", "-k", "stock", "--lease", "3s", "--kill-after", "0", "--", "sh", "-c",
                                    "trap '' TERM; echo $$ >$0/main; while :; do sleep 0.01; done", dir});
  const pid_t job = pid_from(dir / "main");
  const Instant running = BootClock().now();
  while (is_alive(job)) {
    REQUIRE(BootClock().now() < running + 3s - 150ms);  // a twentieth of the ttl is the least that is left to die
    std::this_thread::sleep_for(1ms);
  }
  CHECK(BootClock().now() > started + 2s);
  CHECK(rlock.wait() == exited(124));
}

SERVER_CASE("last resort: a fixed lease with a stopped guardian ends with 124 and its line")
{
  Holder holder(server, {{"run", "-k", "stock"}, "stock"}, {"--lease", "3s"});
  holder.await_job();
  const std::filesystem::path stat = "/proc/" + std::to_string(holder.guardian()) + "/stat";
  wait_until([&] { return has(text_of(stat), ") S "); }, "the guardian waits, and has set its timer");
  ::kill(holder.guardian(), SIGSTOP);
  CHECK(holder.process().wait(30s) == exited(124));
  CHECK(holder.job_is_dead());
  CHECK(holder.process().err() == "rlock: the job was stopped: its lease of stock was over\n");
}

SERVER_CASE("last resort: the runner finds a job with a session of its own when the guardian is killed")
{
  const auto dir = make_temp_dir("job");
  const TestTerminal terminal;
  Process rlock = start_on(server,
                           {"run", "-k", "stock", "--ttl", "60s", "--", "setsid", "sh", "-c",
                            "sh -c 'trap \"\" TERM HUP INT; echo $$ >$0/worker; while :; do sleep 0.05; done' $0 & "
                            "ps -o ppid= -p $$ >$0/guardian; wait",
                            dir},
                           {.terminal = terminal.process_side()});
  const pid_t worker = pid_from(dir / "worker");
  const pid_t guardian = pid_from(dir / "guardian");
  REQUIRE(::getsid(worker) != ::getsid(rlock.pid()));
  ::kill(guardian, SIGKILL);
  CHECK(rlock.wait(30s) == exited(71));
  CHECK_FALSE(is_alive(worker));
  ::kill(worker, SIGKILL);
  CHECK_FALSE(is_held(server, "stock"));
}

SERVER_CASE("killed rlock: the guardian releases its locks, once the job is dead")
{
  std::vector<std::unique_ptr<Holder>> holders;
  for (const Invocation& invocation : invocations()) {
    holders.push_back(std::make_unique<Holder>(server, invocation, Words{"--ttl", "60s"}));
  }
  holders.push_back(
      std::make_unique<Holder>(server, Invocation{{"run", "--format", "string", "-k", "str"}, "str"}, Words{}));
  holders.push_back(std::make_unique<Holder>(server, Invocation{{"run", "-s", "-k", "read"}, "read"}, Words{}));
  holders.push_back(
      std::make_unique<Holder>(server, Invocation{{"once", "--for", "1h", "-k", "once"}, "once"}, Words{}));
  for (auto& holder : holders) {
    holder->await_job();
    REQUIRE(holder->has_lock());
  }
  for (auto& holder : holders) {
    CAPTURE(holder->key());
    holder->process().signal(SIGKILL);
    wait_until([&] { return !holder->has_lock(); }, "the lock is free", 30s);
    CHECK(holder->job_is_dead());
    holder->process().wait();
    wait_until([&] { return !is_alive(holder->guardian()); }, "the guardian has ended");
    const std::string said = holder->process().err();
    CHECK(said.starts_with("rlock: rlock was killed: its job was stopped and its lock released ("));
    CHECK(has(said, holder->key()));
  }
  for (const char* key : {"b", "c"}) {
    CHECK(as_int(server.command({"EXISTS", key})) == 0);
  }
  const Finished again = rlock_on(server, {"once", "-k", "once", "--for", "1h", "--", "echo", "ran"});
  CHECK(again.out == "ran\n");
}

TEST_CASE("killed rlock: a job that was prepared while it waited has its lock released, too")
{
  skip_on_quorum("a waiter prepares nothing there");
  const RedisServer server;
  Holder first(server, {{"run", "-k", "stock"}, "stock"}, {"--ttl", "60s"});
  first.await_job();
  Holder next(server, {{"run", "-k", "stock"}, "stock"}, {"--ttl", "60s"});
  wait_until([&] { return next.look_for_guardian() > 0; }, "the waiter has prepared its job");
  first.process().signal(SIGKILL);
  next.await_job();
  CHECK(first.job_is_dead());
  next.process().signal(SIGKILL);
  wait_until([&] { return !next.has_lock(); }, "the lock is free", 30s);
  CHECK(next.job_is_dead());
}

SERVER_CASE("killed rlock: --min-hold keeps the lock")
{
  Holder holder(server, {{"run", "-k", "stock"}, "stock"}, {"--ttl", "60s", "--min-hold", "20s"});
  holder.await_job();
  holder.process().signal(SIGKILL);
  wait_until([&] { return as_int(server.command({"PTTL", "stock"})) <= 20'000; }, "the lock is kept for 20 s", 30s);
  CHECK(holder.job_is_dead());
  CHECK(holder.has_lock());
}

SERVER_CASE("killed rlock: a daemon that has flock's descriptor keeps the lock")
{
  const auto dir = make_temp_dir("job");
  Process rlock = start_on(
      server, {"flock", "--ttl", "60s", "stock", "sh", "-c",
               "(setsid sh -c 'echo $$ >$0/daemon; exec sleep 300' $0 &); until [ -s $0/daemon ]; do sleep 0.02; "
               "done; ps -o ppid= -p $$ >$0/guardian; sleep 300",
               dir});
  const pid_t guardian = pid_from(dir / "guardian");
  const pid_t daemon = pid_from(dir / "daemon");
  rlock.signal(SIGKILL);
  wait_until([&] { return !is_alive(guardian); }, "the guardian has ended", 30s);
  CHECK(is_alive(daemon));
  CHECK(is_held(server, "stock"));
  ::kill(daemon, SIGKILL);
}
