// SPDX-License-Identifier: Apache-2.0
// --max-waiting and --priority: how long a line is, and who stands in front.
#include "support/integration.h"

using namespace rlock::test;

namespace {

struct BoundedFixture {
  BoundedFixture() { skip_on_quorum("several servers have no queue"); }

  [[nodiscard]] Process start(const Words& options, const Words& job) const
  {
    return start_run(server.url(), joined({"-k", "k"}, options), job);
  }
  [[nodiscard]] Process hold(const Words& options = {}) const { return start(options, {"sleep", "1000"}); }

  RedisServer server;
};

}  // namespace

TEST_SUITE_BEGIN("topology-quick");

TEST_CASE("max-waiting: of twenty callers at once three wait and run, and the others end with 75 and say why")
{
  const BoundedFixture lock;
  Process holder = lock.hold();
  wait_until([&] { return is_held(lock.server); }, "the lock is held");
  std::vector<Process> runs;
  for (int i = 0; i < 20; ++i) {
    runs.push_back(lock.start({"--max-waiting", "3", "-E", "9"}, {"echo", "ran"}));
  }
  const auto ended = [&] {
    return std::count_if(runs.begin(), runs.end(), [](Process& run) { return !run.running(); });
  };
  wait_until([&] { return ended() == 17; }, "all but three have ended");
  CHECK(as_int(lock.server.command({"ZCARD", "rlock:queue:{k}"})) == 3);
  expect_end(rlock_on(lock.server, {"run", "-k", "k", "--max-waiting", "1", "--", "true"}), 75,
             {err_has("; 3 callers wait already, and --max-waiting allows no more\n")});
  holder.signal(SIGTERM);
  CHECK(holder.wait(30s) == died_of(SIGTERM));
  std::string printed;
  for (Process& run : runs) {
    const Exit end = run.wait(30s);
    printed += run.out();
    CHECK((end == success || end == exited(9)));
  }
  CHECK(printed == "ran\nran\nran\n");
  const Finished history = rlock_on(lock.server, {"history", "k"});
  CHECK_MESSAGE(has(history.out, "  skipped"), history.out);
}

TEST_CASE("max-waiting: with shards a caller ends when each line is full, and a nested one enters at once")
{
  const BoundedFixture lock;
  const Words shards{"--shards", "2"};
  Process first = lock.hold(shards);
  Process second = lock.hold(shards);
  wait_until([&] { return is_held(lock.server, "k:0") && is_held(lock.server, "k:1"); }, "both are held");
  Process waiter = lock.start(joined(shards, {"--max-waiting", "1"}), {"echo", "ran"});
  const auto in_line = [&](const std::string& key) {
    return as_int(lock.server.command({"ZCARD", "rlock:queue:{" + key + "}"}));
  };
  wait_until([&] { return in_line("k:0") == 1 && in_line("k:1") == 1; }, "the waiter is in both lines");
  Process late = lock.start(joined(shards, {"--max-waiting", "1"}), {"echo", "ran"});
  CHECK(late.wait(30s) == exited(75));
  first.signal(SIGTERM);
  CHECK(waiter.wait(30s) == success);
  const Words nested = rlock_argv({"run", "-S", lock.server.url(), "-k", "n", "--max-waiting", "1", "--", "true"});
  CHECK(lock.start({"-k", "n"}, nested).wait(30s) == success);
}

TEST_CASE("priority: the urgent one runs before those that came earlier, and status shows it")
{
  const BoundedFixture lock;
  Process holder = lock.hold();
  wait_until([&] { return is_held(lock.server); }, "the lock is held");
  const auto log = make_temp_dir("order") / "log";
  const auto join = [&](const std::string& name, std::int64_t place, const Words& options) {
    Process waiter = lock.start(options, {"sh", "-c", "echo " + name + " >>" + log.string()});
    wait_until([&] { return as_int(lock.server.command({"ZCARD", "rlock:queue:{k}"})) == place; }, name + " waits");
    return waiter;
  };
  Process low = join("low", 1, {"--priority", "-5"});
  Process usual = join("usual", 2, {});
  Process urgent = join("urgent", 3, {"--priority", "10"});
  const Finished status = rlock_on(lock.server, {"status", "k"});
  expect_has(status.out, {", priority 10, running sh -c ", ", priority -5, running sh -c "});
  const Finished list = rlock_on(lock.server, {"list", "--json"});
  CHECK_MESSAGE(has(list.out, R"("priority":10,)"), list.out);
  holder.signal(SIGTERM);
  CHECK(holder.wait(30s) == died_of(SIGTERM));
  for (Process* run : {&low, &usual, &urgent}) {
    CHECK(run->wait(30s) == success);
  }
  CHECK(text_of(log) == "urgent\nusual\nlow\n");
}

TEST_SUITE_END();
