// SPDX-License-Identifier: Apache-2.0
// Whatever happens, the job's whole process tree is dead before another holder's job starts, and no later than the end
// of the lease.
#include "support/activity_log.h"
#include "support/guardian_of.h"
#include "support/integration.h"
#include "support/seed.h"

#include <random>

using namespace rlock::test;

namespace {

constexpr Millis ttl = 2s;
constexpr int rounds = 5;          // of each fault
constexpr int slow_rounds = 3;     // of a fault that lasts for about a ttl
constexpr int slowest_rounds = 1;  // of a fault that lasts for several ttls

std::vector<std::string> session(const RedisServer& server, std::vector<std::string> job)
{
  return rlock_argv(with_job({"run", "-S", server.url(), "-k", "stock", "--ttl", "2s", "--kill-after", "800ms"}, job));
}

struct FaultTarget {
  RedisServer& server;
  Process& holder;
};

// `inject_fault` hits the holder while its job works; `repair` removes what would keep the next holder out.
void check_fault(const std::function<void(FaultTarget)>& inject_fault, const std::function<void(FaultTarget)>& repair,
                 RedisOptions options = {}, int times = rounds)
{
  RedisServer server(std::move(options));
  std::mt19937_64 random(seed());
  for (int round = 0; round < times; ++round) {
    CAPTURE(round);
    const ActivityLog activity;
    Process holder(session(server, activity.stubborn_tree("victim")));
    wait_until([&] { return activity.tree_beats("victim"); }, "the job's tree runs");
    Process next(session(server, activity.short_job("next", 60)));
    wait_until(
        [&] {
          return is_quorum_topology() || as_int(server.command({"ZCARD", "rlock:queue:{stock}"})) == 1;
        },
        "the next one waits");                                 // a quorum has no queue
    std::this_thread::sleep_for(Millis(5 + random() % 1400));  // any time of the renewal cycle

    const std::int64_t injected_at = now_ns();
    inject_fault({server, holder});
    repair({server, holder});
    next.wait(20s);

    const auto jobs = activity.jobs();
    REQUIRE(jobs.contains("next"));
    CHECK(overlap(jobs) == "");
    CHECK((jobs.at("victim").last_ns - injected_at) / 1'000'000 < ttl.count());
    const int beats = jobs.at("victim").beats;
    holder.signal(SIGCONT);
    holder.wait(10s);
    CHECK(activity.jobs().at("victim").beats == beats);  // no process of it runs again
  }
}

void nothing(FaultTarget) {}

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("dead before expiry: kill -9 of rlock")
{
  check_fault([](FaultTarget scene) { scene.holder.signal(SIGKILL); }, nothing);
}

TEST_CASE("dead before expiry: rlock stopped for three times the ttl")
{
  check_fault([](FaultTarget scene) { scene.holder.signal(SIGSTOP); },
              [](FaultTarget) { std::this_thread::sleep_for(3 * ttl); }, {}, slowest_rounds);
}

TEST_CASE("dead before expiry: kill -9 of the guardian")
{
  check_fault([](FaultTarget scene) { ::kill(guardian_of(scene.holder.pid()), SIGKILL); },
              [](FaultTarget scene) { CHECK(scene.holder.wait(5s) == exited(71)); });
}

TEST_CASE("dead before expiry: the guardian stopped")
{
  check_fault(
      [](FaultTarget scene) { ::kill(guardian_of(scene.holder.pid()), SIGSTOP); },
      [](FaultTarget scene) { scene.server.stop_signal(), std::this_thread::sleep_for(2 * ttl), scene.server.cont(); },
      {}, slowest_rounds);
}

TEST_CASE("dead before expiry: the server stopped")
{
  check_fault([](FaultTarget scene) { scene.server.stop_signal(); },
              [](FaultTarget scene) {
                CHECK(scene.holder.wait(10s) == exited(121));
                scene.server.cont();
              },
              {}, slow_rounds);
}

TEST_CASE("dead before expiry: the server killed, and back with its file")
{
  check_fault([](FaultTarget scene) { scene.server.kill_hard(); },
              [](FaultTarget scene) {
                std::this_thread::sleep_for(ttl * 9 / 10);
                scene.server.restart();
              },
              {.args = {"--appendonly", "yes", "--appendfsync", "always"}}, slow_rounds);
}

TEST_CASE("dead before expiry: force-unlock, by a holder that listens")
{
  check_fault(
      [](FaultTarget scene) {
        expect_end(rlock_on(scene.server, {"force-unlock", "-k", "stock", "--yes", "--json"}), 0,
                   {out_has("\"how\":\"released\"")});
        const Exit end = scene.holder.wait(5s);
        CHECK(end == exited(121));
        CHECK(has(scene.holder.err(), "force-unlocked by "));
      },
      nothing);
}

SERVER_CASE("lost for certain: the runner sees to it when the guardian is stopped")
{
  const ActivityLog activity;
  std::vector<std::string> words{"run",   "-S",  server.url(),   "-k",    "stock",
                                 "--ttl", "20s", "--kill-after", "400ms", "--"};
  for (const std::string& word : activity.stubborn_tree("victim")) {
    words.push_back(word);
  }
  Process holder = start_rlock(words);
  wait_until([&] { return activity.tree_beats("victim"); }, "the job's tree runs");
  wait_until([&] { return listening(server) > 0; }, "the holder listens");
  ::kill(guardian_of(holder.pid()), SIGSTOP);
  const Finished forced = rlock_on(server, {"force-unlock", "-k", "stock", "--yes", "--json"});
  CHECK(has(forced.out, "\"how\":\"released\""));
  const std::int64_t free_at = now_ns();
  CHECK(holder.wait(5s) == exited(121));
  CHECK(activity.jobs().at("victim").last_ns < free_at);
}

TEST_CASE("lost for certain: dead within a second of the next renewal")
{
  for (const std::vector<std::string>& blow :
       {std::vector<std::string>{"DEL", "stock"}, {"FLUSHALL"}, {"SET", "stock", "x"}}) {
    CAPTURE(blow.front());
    const RedisServer server;
    const ActivityLog activity;
    Process holder(session(server, activity.stubborn_tree("victim")));
    wait_until([&] { return activity.tree_beats("victim"); }, "the job's tree runs");
    const std::int64_t injected_at = now_ns();
    server.command(blow);
    CHECK(holder.wait(10s) == exited(121));
    const auto latest = ttl / 3 + 1s;
    CHECK((activity.jobs().at("victim").last_ns - injected_at) / 1'000'000 < latest.count());
    CHECK(has(holder.err(), "the lock stock was lost: "));
  }
}

TEST_SUITE_END();
