// SPDX-License-Identifier: Apache-2.0
// The promise nobody else makes: whatever happens, the job's whole tree is dead before another holder's job
// starts, and no later than the lease's end.
#include "support/redis_fixture.h"
#include "support/seed.h"
#include "support/wait_until.h"
#include "support/witness.h"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

constexpr Millis ttl = 1s;
constexpr int rounds = 7;  // of each fault; with seven faults about fifty in all

std::vector<std::string> session(const RedisServer& server, std::vector<std::string> job)
{
  std::vector<std::string> words{"run",   "-S", server.url(),   "-k",    "stock",
                                 "--ttl", "1s", "--kill-after", "400ms", "--"};
  words.insert(words.end(), job.begin(), job.end());
  return rlock_argv(words);
}

// The guardian is the runner's only child.
pid_t guardian_of(pid_t runner)
{
  const std::string task = "/proc/" + std::to_string(runner) + "/task/" + std::to_string(runner) + "/children";
  pid_t child = 0;
  std::ifstream(task) >> child;
  REQUIRE(child > 0);
  return child;
}

struct Scene {
  RedisServer& server;
  Process& holder;
};

// `strike` hits the holder while it works and `mend` puts right what would keep the next one out.
void rounds_of(const std::function<void(Scene)>& strike, const std::function<void(Scene)>& mend,
               RedisOptions options = {})
{
  RedisServer server(std::move(options));
  std::mt19937_64 random(seed());
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    const Witness witness;
    Process holder(session(server, witness.stubborn_tree("victim")));
    wait_until([&] { return witness.tree_beats("victim"); }, "the job's tree runs");
    Process next(session(server, witness.short_job("next", 60)));
    wait_until(
        [&] {
          return on_a_quorum() || as_int(server.command({"ZCARD", "rlock:queue:{stock}"})) == 1;
        },
        "the next one waits");                                // of several servers it stands in no line
    std::this_thread::sleep_for(Millis(5 + random() % 700));  // any moment of the cycle once `next` heard its place

    const std::int64_t struck = now_ns();
    strike({server, holder});
    mend({server, holder});
    next.wait(20s);

    const auto jobs = witness.jobs();
    REQUIRE(jobs.contains("next"));
    CHECK(overlap(jobs) == "");
    CHECK((jobs.at("victim").last_ns - struck) / 1'000'000 < ttl.count());
    const int beats = jobs.at("victim").beats;
    holder.signal(SIGCONT);
    holder.wait(10s);
    CHECK(witness.jobs().at("victim").beats == beats);  // dead it stays
  }
}

void nothing(Scene) {}

}  // namespace

TEST_CASE("dead before expiry: kill -9 of rlock")
{
  rounds_of([](Scene scene) { scene.holder.signal(SIGKILL); }, nothing);
}

TEST_CASE("dead before expiry: rlock stopped for three times the ttl")
{
  rounds_of([](Scene scene) { scene.holder.signal(SIGSTOP); }, [](Scene) { std::this_thread::sleep_for(3 * ttl); });
}

TEST_CASE("dead before expiry: kill -9 of the guardian")
{
  rounds_of([](Scene scene) { ::kill(guardian_of(scene.holder.pid()), SIGKILL); },
            [](Scene scene) { CHECK(scene.holder.wait(5s) == Exit{.code = 71, .signal = 0}); });
}

TEST_CASE("dead before expiry: the guardian stopped")
{
  rounds_of([](Scene scene) { ::kill(guardian_of(scene.holder.pid()), SIGSTOP); },
            [](Scene scene) { scene.server.stop_signal(), std::this_thread::sleep_for(2 * ttl), scene.server.cont(); });
}

TEST_CASE("dead before expiry: the server stopped")
{
  rounds_of([](Scene scene) { scene.server.stop_signal(); },
            [](Scene scene) {
              CHECK(scene.holder.wait(10s) == Exit{.code = 121, .signal = 0});
              scene.server.cont();
            });
}

TEST_CASE("dead before expiry: the server killed, and back with its file")
{
  rounds_of([](Scene scene) { scene.server.kill_hard(); },
            [](Scene scene) {
              std::this_thread::sleep_for(ttl * 9 / 10);
              scene.server.restart();
            },
            {.args = {"--appendonly", "yes", "--appendfsync", "always"}});
}

TEST_CASE("dead before expiry: force-unlock, by a holder that listens")
{
  rounds_of(
      [](Scene scene) {
        const Finished forced = run_rlock({"force-unlock", "-S", scene.server.url(), "-k", "stock", "--yes", "--json"});
        CHECK(forced.code == 0);
        CHECK(forced.out.find("\"how\":\"released\"") != std::string::npos);
        const Exit end = scene.holder.wait(5s);
        CHECK(end == Exit{.code = 121, .signal = 0});
        CHECK(scene.holder.err().find("force-unlocked by ") != std::string::npos);
      },
      nothing);
}

TEST_CASE("lost for certain: the runner sees to it when the guardian is stopped")
{
  const RedisServer server;
  const Witness witness;
  std::vector<std::string> words{"run",   "-S",  server.url(),   "-k",    "stock",
                                 "--ttl", "20s", "--kill-after", "400ms", "--"};
  for (const std::string& word : witness.stubborn_tree("victim")) {
    words.push_back(word);
  }
  Process holder(rlock_argv(words));
  wait_until([&] { return witness.tree_beats("victim"); }, "the job's tree runs");
  wait_until(
      [&] {
        return !as_texts(server.command({"PUBSUB", "CHANNELS", "rlock:owner:*"})).empty();
      },
      "the holder listens");
  ::kill(guardian_of(holder.pid()), SIGSTOP);
  const Finished forced = run_rlock({"force-unlock", "-S", server.url(), "-k", "stock", "--yes", "--json"});
  CHECK(forced.out.find("\"how\":\"released\"") != std::string::npos);
  const std::int64_t free_at = now_ns();
  CHECK(holder.wait(5s) == Exit{.code = 121, .signal = 0});
  CHECK(witness.jobs().at("victim").last_ns < free_at);
}

TEST_CASE("lost for certain: dead within a second of the next renewal")
{
  for (const std::vector<std::string>& blow :
       {std::vector<std::string>{"DEL", "stock"}, {"FLUSHALL"}, {"SET", "stock", "x"}}) {
    CAPTURE(blow.front());
    const RedisServer server;
    const Witness witness;
    Process holder(session(server, witness.stubborn_tree("victim")));
    wait_until([&] { return witness.tree_beats("victim"); }, "the job's tree runs");
    const std::int64_t struck = now_ns();
    server.command(blow);
    CHECK(holder.wait(10s) == Exit{.code = 121, .signal = 0});
    const auto latest = ttl / 3 + 1s;
    CHECK((witness.jobs().at("victim").last_ns - struck) / 1'000'000 < latest.count());
    CHECK(holder.err().find("the lock stock was lost: ") != std::string::npos);
  }
}
