// SPDX-License-Identifier: Apache-2.0
// rlock beside clients that wait as Redisson does.
#include "support/foreign_client.h"
#include "support/integration.h"
#include "support/silent_observer.h"

#include <atomic>

#include "base/clock.h"
#include "lock/waiting.h"
#include "stores/open.h"

using namespace rlock::test;

namespace {

// Counts holders, and notices an overlap.
struct Floor {
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::atomic<int> rlock_holds{0};
  std::atomic<int> foreign{0};

  void hold(std::atomic<int>& side)
  {
    overlaps += inside.fetch_add(1) > 0 ? 1 : 0;
    std::this_thread::sleep_for(2ms);
    inside -= 1;
    side += 1;
  }
};

struct Turns {
  Instant last;
  Millis longest{0};
  void note(Instant now)
  {
    longest = std::max(longest, std::chrono::duration_cast<Millis>(now - last));
    last = now;
  }
};

void rlock_loop(const std::string& url, Floor& floor, Instant end, Turns& turns)
{
  const BootClock clock;
  SystemRng rng;
  SilentObserver silent;
  turns.last = clock.now();
  auto store = open_store({.endpoints = {*parse_url(url)}}, clock, StopToken::never());
  while (clock.now() < end) {
    const LockSpec spec{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = 30s, .who = {.host = "h", .pid = 1}};
    const Owner owner = Owner::fresh(rng, 1);
    const WaitPolicy policy{.until = end + 1s, .waits = true, .server_timeout = 5s};
    const auto outcome = wait_and_acquire(**store, spec, owner, policy, clock, rng, StopToken::never(), silent);
    if (!outcome || !std::holds_alternative<Taken>(*outcome)) {
      return;
    }
    turns.note(clock.now());
    floor.hold(floor.rlock_holds);
    const auto released =
        (*store)->release(spec, owner, {}, {.deadline = clock.now() + 5s, .stop = StopToken::never()});
    if (!released) {
      return;
    }
  }
}

void foreign_loop(const std::string& url, int number, Floor& floor, Instant end, Turns& turns)
{
  const BootClock clock;
  turns.last = clock.now();
  ForeignClient client(url, "k", "uuid:" + std::to_string(number));
  while (clock.now() < end && client.lock(end + 1s)) {
    turns.note(clock.now());
    floor.hold(floor.foreign);
    client.unlock();
  }
}

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("foreign: three foreign clients and three rlock jobs that loop each get their share, without overlap")
{
  skip_on_databases("clients that are not rlock use Redis");
  skip_on_quorum("a foreign client knows one server");
  const RedisServer server;
  const BootClock clock;
  const Instant end = clock.now() + 8s;
  Floor floor;
  std::vector<Turns> turns(6);
  std::vector<std::thread> crowd;
  for (int i = 0; i < 3; ++i) {
    crowd.emplace_back([&, i] { rlock_loop(server.direct_url(), floor, end, turns[static_cast<std::size_t>(i)]); });
    crowd.emplace_back(
        [&, i] { foreign_loop(server.direct_url(), i, floor, end, turns[static_cast<std::size_t>(3 + i)]); });
  }
  for (std::thread& one : crowd) {
    one.join();
  }
  const int all = floor.rlock_holds + floor.foreign;
  MESSAGE("ours ", floor.rlock_holds.load(), ", foreign ", floor.foreign.load());
  CHECK(floor.overlaps == 0);
  CHECK(floor.rlock_holds * 4 >= all);
  CHECK(floor.foreign * 4 >= all);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    CAPTURE(i);  // the first three are rlock's
    CHECK(turns[i].longest < 2s);
  }
}

TEST_CASE("foreign: the first rlock waiter gets the lock from a foreign holder at once")
{
  skip_on_quorum("a foreign client knows one server");
  const RedisServer server;
  ForeignClient java(server.direct_url(), "k", "uuid:1");
  REQUIRE_FALSE(java.try_lock());
  Process job = start_on(server, {"run", "-k", "k", "--", "true"});
  wait_until(
      [&] {
        const Reply subscribers = server.command({"PUBSUB", "NUMSUB", "redisson_lock__channel:{k}"});
        return subscribers.elements.at(1).integer == 1;
      },
      "the first waiter has subscribed to releases");
  const auto from = std::chrono::steady_clock::now();
  java.unlock();
  CHECK(job.wait(5s) == success);
  CHECK(std::chrono::steady_clock::now() - from < 2s);  // its ttl had 30 s to go
}

TEST_CASE("foreign: a forceUnlock while rlock holds the lock stops the job at once")
{
  skip_on_quorum("a foreign client knows one server");
  const RedisServer server;
  Process job = start_on(server, {"run", "-k", "k", "--", "sleep", "60"});
  wait_until(
      [&] {
        const Reply subscribers = server.command({"PUBSUB", "NUMSUB", "redisson_lock__channel:{k}"});
        return subscribers.elements.at(1).integer == 1;
      },
      "the holder has subscribed to releases");
  ForeignClient(server.direct_url(), "k", "uuid:1").force_unlock();
  const auto from = std::chrono::steady_clock::now();
  CHECK(job.wait(5s) == exited(121));
  CHECK(std::chrono::steady_clock::now() - from < 3s);  // the next renewal was 10 s away
}

TEST_SUITE_END();
