// SPDX-License-Identifier: Apache-2.0
// Watchdogs of a server whose clock the test controls.
#include "lease/watchdog.h"

#include "lock/validity.h"
#include "support/fake_store.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <atomic>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

// The longest lease that is assumed after the server's clock was sampled twice.
Millis longest_lease(double pace)
{
  const BootClock clock;
  const Log log(Verbosity::quiet);
  const auto server = std::make_shared<FakeServer>();
  server->have_a_clock(pace);
  const auto store = store_on(server, clock);
  const LockSpec spec{.name = *LockName::parse("k"), .mode = Plain{}, .ttl = 1500ms, .who = {}, .once = {}};
  const Owner alice = Owner::of("alice");
  const Instant acquired_at = clock.now();
  REQUIRE(store->acquire(spec, alice, {}, {.deadline = clock.now() + 5s, .stop = StopToken::never()}));

  std::atomic<int> renewals{0};
  std::atomic<std::int64_t> longest{0};
  const auto on_moved = [&](Instant valid_until) {
    if (++renewals > 1) {
      longest = std::max(longest.load(), std::chrono::ceil<Millis>(valid_until - clock.now()).count());
    }
  };
  Watchdog watchdog(*store,
                    {.spec = spec,
                     .owner = alice,
                     .renews = true,
                     .acquired_at = acquired_at,
                     .kill_margin = 100ms,
                     .listener = {},
                     .on_moved = on_moved},
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
  const LockSpec spec{.name = *LockName::parse("k"), .mode = Plain{}, .ttl = 60s, .who = {}, .once = {}};
  const Owner alice = Owner::of("alice");
  const Instant acquired_at = clock.now();
  REQUIRE(store->acquire(spec, alice, {}, {.deadline = clock.now() + 5s, .stop = StopToken::never()}));
  std::atomic<int> moves{0};
  const auto watchdog_of = [&](Instant granted_at) {
    return std::make_unique<Watchdog>(*store,
                                      WatchdogOptions{.spec = spec,
                                                      .owner = alice,
                                                      .renews = true,
                                                      .acquired_at = granted_at,
                                                      .claim = 2s,
                                                      .kill_margin = 5s,
                                                      .listener = {},
                                                      .on_moved = [&](Instant) { ++moves; }},
                                      clock, log);
  };
  SUBCASE("the server answers")
  {
    const auto watchdog = watchdog_of(acquired_at);
    wait_until([&] { return moves >= 1; }, "it was confirmed");
    watchdog->stop();
    CHECK(watchdog->last_kept() > acquired_at);
    CHECK(moves <= 2);  // the second one follows the subscription
  }
  SUBCASE("the server does not answer")
  {
    server->be(FakeServer::Behavior::down);
    const auto watchdog = watchdog_of(clock.now());
    wait_until([&] { return watchdog->event().has_value(); }, "it gave up");
    CHECK(clock.now() - acquired_at < 59s);  // a claim is over long before the ttl is
    CHECK(std::holds_alternative<Unconfirmed>(*watchdog->event()));
    CHECK(moves == 0);
  }
}

TEST_CASE("watchdog: a lock that is lost after a request for its release is told as well, for the job must die at once")
{
  const BootClock clock;
  const Log log(Verbosity::quiet);
  const auto server = std::make_shared<FakeServer>();
  const auto store = store_on(server, clock);
  const LockSpec spec{.name = *LockName::parse("k"), .mode = Plain{}, .ttl = 9s, .who = {}, .once = {}};
  const Owner alice = Owner::of("alice");
  const Instant acquired_at = clock.now();
  REQUIRE(store->acquire(spec, alice, {}, {.deadline = clock.now() + 5s, .stop = StopToken::never()}));
  server->ask_for("eve");
  Watchdog watchdog(*store,
                    {.spec = spec,
                     .owner = alice,
                     .renews = true,
                     .acquired_at = acquired_at,
                     .kill_margin = 100ms,
                     .listener = {},
                     .on_moved = [](Instant) {}},
                    clock, log);
  wait_until([&] { return watchdog.event().has_value(); }, "the request is known", 30s);
  CHECK_FALSE(StopToken(watchdog.lost_fd()).requested());
  server->forget_all();
  wait_until([&] { return StopToken(watchdog.lost_fd()).requested(); }, "the loss is known", 30s);
  watchdog.stop();
  CHECK(std::get<ReleaseRequested>(*watchdog.event()).by == "eve");
}

TEST_CASE("watchdog: a lease ends here before it ends on the server: by 1 % and 2 ms")
{
  constexpr Instant sent_at{1h};
  CHECK((valid_until(sent_at, 30s) - sent_at == 29'698ms));
  CHECK((valid_until(sent_at, 100ms) - sent_at == 97ms));
}
