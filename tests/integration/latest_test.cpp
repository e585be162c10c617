// SPDX-License-Identifier: Apache-2.0
// run --latest: of the runs that wait the newest stays, whatever is stopped, killed or cut off meanwhile.
#include "support/integration.h"

using namespace rlock::test;

namespace {

constexpr Exit is_busy = exited(75);

struct LatestFixture {
  LatestFixture() { skip_on_quorum("several servers have no queue"); }

  [[nodiscard]] Process start(const Words& options, const Words& job) const
  {
    return start_run(server.url(), joined({"-k", "k"}, options), job);
  }
  [[nodiscard]] Process hold() const
  {
    Process holder = start({}, {"sleep", "1000"});
    wait_until([&] { return is_held(server); }, "the lock is held");
    return holder;
  }
  // Returns when the run, whose label is its name, is in line.
  [[nodiscard]] Process wait_in_line(const std::string& name, Words options = {}) const
  {
    options.insert(options.end(), {"--latest", "--label", name});
    Process waiter = start(options, {"echo", name});
    wait_until([&] { return is_in_line(name); }, name + " is in line");
    return waiter;
  }
  [[nodiscard]] bool is_in_line(const std::string& name) const
  {
    const auto line = as_texts(server.command({"ZRANGE", "rlock:queue:{k}", "0", "-1"}));
    const auto has_label = [&](const std::string& owner) {
      const Reply info = server.command({"HGET", "rlock:waiters:{k}", owner});
      return has(info.text, "label=" + name + "\n");
    };
    return std::any_of(line.begin(), line.end(), has_label);
  }
  void await_listener() const
  {
    wait_until([&] { return listening(server) > 0; }, "a waiter listens");
  }
  static void end(Process& holder)
  {
    holder.signal(SIGTERM);
    CHECK(holder.wait(30s) == died_of(SIGTERM));
  }

  RedisServer server;
};

}  // namespace

#define LATEST_RUN_CASE(title) CASE_WITH(LatestFixture, lock, title)

TEST_SUITE_BEGIN("topology");

LATEST_RUN_CASE("latest: earlier waiters end with 75 and say who replaced them, and the newest runs")
{
  Process holder = lock.hold();
  Process first = lock.wait_in_line("first");
  Process second = lock.wait_in_line("second", {"-E", "9", "--notify", R"(echo "$RLOCK_OUTCOME: $RLOCK_MESSAGE")"});
  CHECK(first.wait(30s) == is_busy);
  CHECK(has(first.err(), "rlock: k: a newer run has taken the place of this one: "));
  CHECK(has(first.err(), "running echo second [second]\n"));
  Process third = lock.wait_in_line("third");
  expect_end(second, exited(9), {err_has("replaced: k: a newer run has taken the place of this one: ")}, 30s);
  LatestFixture::end(holder);
  CHECK(third.wait(30s) == success);
  CHECK(first.out() + second.out() + third.out() == "third\n");
  const Finished history = rlock_on(lock.server, {"history", "k"});
  expect_has(history.out, {"  replaced", "(replaced by "});
  CHECK_FALSE(has(history.out, "(held by "));
}

LATEST_RUN_CASE("latest: a run that was replaced ends with the code of its own, and a busy one with the other")
{
  Process holder = lock.hold();
  const std::string tell = R"(echo "$RLOCK_OUTCOME $RLOCK_EXIT_CODE by $RLOCK_HOLDER" >&2)";
  Process first = lock.wait_in_line("first", {"--replaced-exit-code", "0", "--notify", tell});
  Process second = lock.wait_in_line("second", {"--replaced-exit-code", "0", "-E", "9", "-w", "1s"});
  expect_end(first, success, {err_has("replaced 0 by "), err_has(", running echo second [second]\n")}, 30s);
  CHECK(second.wait(30s) == exited(9));
  LatestFixture::end(holder);
  expect_end(rlock_on(lock.server, {"run", "-k", "k", "--replaced-exit-code", "0", "--", "true"}), 64,
             {err_has("--replaced-exit-code"), err_has("--latest")});
}

LATEST_RUN_CASE("latest: waiters without it keep their places, and the newest has that of its own arrival")
{
  Process holder = lock.hold();
  Process replaced = lock.wait_in_line("replaced");
  Process plain = lock.start({"--label", "plain"}, {"sh", "-c", "date +%s%N; sleep 0.1"});
  wait_until([&] { return lock.is_in_line("plain"); }, "it is in line");
  Process newest = lock.start({"--latest", "--label", "newest"}, {"date", "+%s%N"});
  wait_until([&] { return lock.is_in_line("newest"); }, "it is in line");
  CHECK(replaced.wait(30s) == is_busy);
  LatestFixture::end(holder);
  CHECK(plain.wait(30s) == success);
  CHECK(newest.wait(30s) == success);
  CHECK(plain.out() < newest.out());
}

LATEST_RUN_CASE("latest: of many that come at once one stays")
{
  Process holder = lock.hold();
  std::vector<Process> runs;
  for (int i = 0; i < 10; ++i) {
    runs.push_back(lock.start({"--latest"}, {"echo", "ran"}));
  }
  const auto alive = [&] {
    return std::count_if(runs.begin(), runs.end(), [](Process& run) { return run.running(); });
  };
  wait_until([&] { return alive() == 1; }, "one is left");
  LatestFixture::end(holder);
  std::string said;
  for (Process& run : runs) {
    const Exit exit = run.wait(30s);
    CHECK((exit == is_busy || exit == success));
    said += run.out();
  }
  CHECK(said == "ran\n");
}

TEST_SUITE_END();

TEST_CASE("latest: a replaced waiter that was stopped does not run when it goes on, with or without its message")
{
  for (const bool hears : {true, false}) {
    for (const bool queue_is_forgotten : {false, true}) {
      CAPTURE(hears);
      CAPTURE(queue_is_forgotten);
      const LatestFixture lock;
      Process holder = lock.hold();
      Process stopped = lock.wait_in_line("stopped");
      lock.await_listener();
      stopped.signal(SIGSTOP);
      Process newest = lock.wait_in_line("newest");
      if (!hears) {
        lock.server.command({"CLIENT", "KILL", "TYPE", "pubsub"});
      }
      LatestFixture::end(holder);
      CHECK(newest.wait(30s) == success);
      if (queue_is_forgotten) {
        lock.server.command({"DEL", "rlock:queue:{k}", "rlock:waiters:{k}"});
      }
      stopped.signal(SIGCONT);
      expect_end(stopped, is_busy, {out_is("")}, 60s);
    }
  }
}
