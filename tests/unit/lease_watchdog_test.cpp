// SPDX-License-Identifier: Apache-2.0
// Watchdogs of a server whose clock the test controls.
#include "lease/watchdog.h"

#include "support/fake_store.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <utility>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

using MoveHandler = std::function<void(const LeaseBudget&)>;

// Of one lease.
WatchdogOptions one(LeaseWatchOptions lease, MoveHandler on_moved, const Clock& clock, const Log& log)
{
  return {.leases = {LeaseWatch(std::move(lease), clock, log)}, .listener = nullptr, .on_moved = std::move(on_moved)};
}

// The first news; nullopt: there is none yet.
std::optional<LeaseEvent> news_of(Watchdog& watchdog)
{
  const auto news = watchdog.take_news();
  return news.empty() ? std::nullopt : std::optional(news.front().event);
}

LeaseEvent next_event(Watchdog& watchdog, const char* what)
{
  std::optional<LeaseEvent> event;
  wait_until([&] { return (event = news_of(watchdog)).has_value(); }, what, 30s);
  return *event;
}

// The longest lease that is assumed after the server's clock was sampled twice.
Millis longest_lease(double pace)
{
  const BootClock clock;
  const Log log(Verbosity::quiet);
  const auto server = std::make_shared<FakeServer>();
  server->have_a_clock(pace);
  const auto store = store_on(server, clock);
  const LockSpec spec{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = 1500ms, .who = {}, .once = {}};
  const Owner alice = Owner::of("alice");
  const Instant acquired_at = clock.now();
  REQUIRE(store->acquire(spec, alice, {}, {.deadline = clock.now() + 5s, .stop = StopToken::never()}));

  std::atomic<int> renewals{0};
  std::atomic<std::int64_t> longest{0};
  const auto on_moved = [&](const LeaseBudget& lease) {
    if (++renewals > 1) {
      longest = std::max(longest.load(), std::chrono::ceil<Millis>(lease.valid_until() - clock.now()).count());
    }
  };
  Watchdog watchdog(*store,
                    one({.spec = spec,
                         .owner = alice,
                         .renews = true,
                         .lease = LeaseBudget({.from = acquired_at, .length = spec.ttl}),
                         .kill_after = 100ms},
                        on_moved, clock, log),
                    clock, log);
  wait_until([&] { return renewals >= 3; }, "it was renewed three times");
  watchdog.stop();
  return Millis{longest};
}

}  // namespace

TEST_CASE("watchdog: on a server whose clock is fast a lease is counted on for less")
{
  CHECK(longest_lease(1.5) <= 1000ms);  // a third less
  CHECK(longest_lease(1.0) <= 1500ms);
}

TEST_CASE("watchdog: a lease that began with a hand-over is renewed at once, and then as any other")
{
  const BootClock clock;
  const Log log(Verbosity::quiet);
  const auto server = std::make_shared<FakeServer>();
  const auto store = store_on(server, clock);
  const LockSpec spec{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = 60s, .who = {}, .once = {}};
  const Owner alice = Owner::of("alice");
  const Instant acquired_at = clock.now();
  REQUIRE(store->acquire(spec, alice, {}, {.deadline = clock.now() + 5s, .stop = StopToken::never()}));
  std::atomic<int> moves{0};
  const auto watchdog_of = [&](Instant granted_at) {
    return std::make_unique<Watchdog>(*store,
                                      one(
                                          {.spec = spec,
                                           .owner = alice,
                                           .renews = true,
                                           .lease = LeaseBudget({.from = granted_at, .length = 2s}),
                                           .is_claim = true,
                                           .kill_after = 5s},
                                          [&](const LeaseBudget&) { ++moves; }, clock, log),
                                      clock, log);
  };
  SUBCASE("the server answers")
  {
    const auto watchdog = watchdog_of(acquired_at);
    wait_until([&] { return moves >= 1; }, "it was confirmed");
    watchdog->stop();
    CHECK(watchdog->leases().front().lease().term().from > acquired_at);
    CHECK(moves <= 2);  // the second one follows the subscription
  }
  SUBCASE("the server does not answer")
  {
    server->be(FakeServer::Behavior::down);
    const auto watchdog = watchdog_of(clock.now());
    CHECK(std::holds_alternative<Unconfirmed>(next_event(*watchdog, "it gave up")));
    CHECK(clock.now() - acquired_at < 59s);  // a claim is over long before the ttl is
    CHECK(moves == 0);
  }
}

TEST_CASE("watchdog: a lock that is lost after a request for its release is told as well, for the job must die at once")
{
  const BootClock clock;
  const Log log(Verbosity::quiet);
  const auto server = std::make_shared<FakeServer>();
  const auto store = store_on(server, clock);
  const LockSpec spec{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = 9s, .who = {}, .once = {}};
  const Owner alice = Owner::of("alice");
  const Instant acquired_at = clock.now();
  REQUIRE(store->acquire(spec, alice, {}, {.deadline = clock.now() + 5s, .stop = StopToken::never()}));
  server->ask_for("eve");
  Watchdog watchdog(*store,
                    one(
                        {.spec = spec,
                         .owner = alice,
                         .renews = true,
                         .lease = LeaseBudget({.from = acquired_at, .length = spec.ttl}),
                         .kill_after = 100ms},
                        [](const LeaseBudget&) {}, clock, log),
                    clock, log);
  CHECK(std::get<ReleaseRequested>(next_event(watchdog, "the request is known")).by == "eve");
  CHECK_FALSE(StopToken(watchdog.fd()).requested());
  server->forget_all();
  wait_until([&] { return StopToken(watchdog.fd()).requested(); }, "the loss is known", 30s);
  CHECK(std::holds_alternative<Lost>(next_event(watchdog, "the loss is told")));
}

namespace {

// A lock that alice holds, as the store gave it, and its watchdog.
struct Watched {
  Watched(Millis ttl, Millis less, Millis earlier) : store(store_on(server, clock))
  {
    spec.ttl = ttl;
    server->give_less(less, earlier);
    const auto answer = store->acquire(spec, alice, {}, {.deadline = clock.now() + 5s, .stop = StopToken::never()});
    REQUIRE(answer);
    lease = std::get<Granted>(*answer).lease;
  }

  std::unique_ptr<Watchdog> watch()
  {
    const auto on_moved = [this](const LeaseBudget& moved) {
      longest = std::max(longest.load(), moved.term().length);
      youngest = std::min(youngest.load(), clock.now() - moved.term().from);
      ++moves;
    };
    return std::make_unique<Watchdog>(
        *store,
        one({.spec = spec, .owner = alice, .renews = true, .lease = LeaseBudget(lease), .kill_after = 10ms}, on_moved,
            clock, log),
        clock, log);
  }

  BootClock clock;
  Log log{Verbosity::quiet};
  std::shared_ptr<FakeServer> server = std::make_shared<FakeServer>();
  std::unique_ptr<LockStore> store;
  LockSpec spec{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = {}, .who = {}, .once = {}};
  Owner alice = Owner::of("alice");
  LeaseTerm lease{};
  std::atomic<int> moves{0};
  std::atomic<Millis> longest{Millis{0}};
  std::atomic<Instant::duration> youngest{Instant::duration::max()};
};

}  // namespace

TEST_CASE("watchdog: a lease is counted and renewed as the store gave it, not as it was asked for")
{
  Watched held(60s, 58'800ms, 50ms);  // 1.2 s, of which 50 ms are over
  const auto watchdog = held.watch();
  wait_until([&] { return held.moves >= 3; }, "it was renewed within the lease that the store gives");
  watchdog->stop();
  CHECK_FALSE(news_of(*watchdog));
  CHECK(held.longest.load() == 1200ms);
  CHECK(held.youngest.load() >= 50ms);
}

TEST_CASE("watchdog: a lease that is half over when it is given is renewed before its end, and not without a pause")
{
  Watched held(2s, 0s, 1s);
  const auto watchdog = held.watch();
  wait_until([&] { return held.moves >= 5; }, "it is renewed");
  CHECK_FALSE(news_of(*watchdog));
  const int before = held.moves;
  held.clock.sleep_until(held.clock.now() + 200ms, StopToken::never());
  watchdog->stop();
  CHECK(held.moves - before <= 11);
}

TEST_CASE("watchdog: a renewal whose answer comes after the old end extends nothing")
{
  Watched held(600ms, 0s, 0s);
  held.server->hold_back(700ms);
  const auto watchdog = held.watch();
  CHECK(std::get<Unconfirmed>(next_event(*watchdog, "it gave up")).why ==
        "the answer to its renewal came after the end of the lease");
  CHECK(held.moves == 0);
}
