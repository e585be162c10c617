// SPDX-License-Identifier: Apache-2.0
// A lease that the main thread renews by itself.
#include "lease/lease.h"

#include "support/fake_store.h"
#include "support/stepped_clock.h"

#include <doctest/doctest.h>

#include <memory>
#include <utility>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

constexpr Millis step{1000};  // each reading of the clock
const CallLimits without_limit{.deadline = far_future, .stop = StopToken::never()};

struct Held {
  explicit Held(Millis per_reading = step) : clock(per_reading)
  {
    server->have_a_clock(1.0);  // so that the server reads the clock as well, before it answers
    REQUIRE(store->acquire(spec, owner, {}, without_limit));
  }

  SteppedClock clock;
  std::shared_ptr<FakeServer> server = std::make_shared<FakeServer>();
  std::unique_ptr<LockStore> store = store_on(server, clock);
  LockSpec spec{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = 30s, .who = {}, .once = {}};
  Owner owner = Owner::of("alice:1");
  Lease lease{*store,
              {.spec = spec, .owner = owner, .lease = {.from = clock.now(), .length = spec.ttl}, .listener = {}},
              10ms,
              clock};
};

}  // namespace

TEST_CASE("lease: a renewal counts from when it was sent, not from its answer")
{
  Held held;
  const Instant before = held.clock.now();
  held.lease.renew(without_limit);
  CHECK_FALSE(held.lease.event());
  CHECK((held.lease.budget().term().from - before == step));
}

TEST_CASE("lease: a renewal without an answer leaves the lease as it was, and says why it is not sure")
{
  Held held;
  const Instant before = held.lease.budget().term().from;
  held.server->be(FakeServer::Behavior::down);
  held.lease.renew(without_limit);
  REQUIRE(held.lease.event());
  CHECK(std::get<Unconfirmed>(*held.lease.event()).why == "it could not be renewed: connection refused");
  CHECK((held.lease.budget().term().from == before));
}

TEST_CASE("lease: a renewal of a lock that is gone is a loss")
{
  Held held;
  held.server->forget_all();
  held.lease.renew(without_limit);
  REQUIRE(held.lease.event());
  CHECK(std::holds_alternative<Lost>(*held.lease.event()));
}

TEST_CASE("lease: a renewal counts for as long as the store gives, and from when the store says")
{
  Held held;
  held.server->give_less(20s, 3s);
  const Instant before = held.clock.now();
  held.lease.renew(without_limit);
  CHECK_FALSE(held.lease.event());
  CHECK(held.lease.budget().term().length == 10s);
  CHECK((held.lease.budget().term().from == before + step - 3s));
}

TEST_CASE("lease: a renewal whose answer comes after the old end extends nothing")
{
  Held held(16s);  // sent 16 s after the grant, answered 48 s after it
  const Instant end = held.lease.budget().valid_until();
  held.lease.renew(without_limit);
  REQUIRE(held.lease.event());
  CHECK(std::get<Unconfirmed>(*held.lease.event()).why == "the answer to its renewal came after the end of the lease");
  CHECK((held.lease.budget().valid_until() == end));
}

TEST_CASE("lease: a claim after a long wait is watched from some time after its message, not at once")
{
  const SteppedClock clock;
  const auto store = store_on(std::make_shared<FakeServer>(), clock);
  const LockSpec spec{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = 30s, .who = {}, .once = {}};
  const auto watched_after = [&](Millis age, Millis length) {
    GrantedLock claim{.spec = spec,
                      .owner = Owner::of("alice:1"),
                      .lease = {.from = clock.now() - age, .length = length},
                      .is_claim = true,
                      .listener = {}};
    return Lease(*store, std::move(claim), 10ms, clock).watch_from() - clock.now();
  };
  CHECK(watched_after(2ms, 2s) == 50ms);
  CHECK(watched_after(102ms, 2s) == 50ms);    // 1 % of a wait of 10 s, and 2 ms
  CHECK(watched_after(102ms, 660ms) == 8ms);  // a sixth of the claim
  CHECK(watched_after(400ms, 2s) < 0ms);
}

TEST_CASE("lease: one that began before its grant is not watched at once")
{
  const SteppedClock clock;
  const auto store = store_on(std::make_shared<FakeServer>(), clock);
  const LockSpec spec{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = 30s, .who = {}, .once = {}};
  const auto watched_after = [&](Millis age, Millis length) {
    GrantedLock granted{.spec = spec,
                        .owner = Owner::of("alice:1"),
                        .lease = {.from = clock.now() - age, .length = length},
                        .listener = {}};
    return Lease(*store, std::move(granted), 10ms, clock).watch_from() - clock.now();
  };
  CHECK(watched_after(0ms, 30s) == 200ms);
  CHECK(watched_after(3s, 30s) == 200ms);      // a bucket tells whole seconds, and its hosts differ
  CHECK(watched_after(4900ms, 30s) == 100ms);  // a sixth of the lease
  CHECK(watched_after(3s, 15s) < 0ms);
}
