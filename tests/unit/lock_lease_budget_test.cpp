// SPDX-License-Identifier: Apache-2.0
// A grant that comes so late that half of its lease or less is left begins no job.
#include "lock/lease_budget.h"

#include "lock/reentry.h"
#include "support/fake_store.h"
#include "support/silent_observer.h"
#include "support/stepped_clock.h"
#include "support/test.h"

#include <memory>

using namespace rlock::test;

namespace {

using Words = std::vector<std::string>;

constexpr Millis half_and_more{15'000};  // of the lease passes with each reading of the clock

const LockSpec spec{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = 30s, .who = {}, .once = {}};
const Owner alice = Owner::of("alice:1");

// A lock that alice asks for, on a clock that moves while she waits for an answer.
struct Asked {
  explicit Asked(Millis per_reading) : clock(per_reading), store(store_on(server, clock)) {}

  Result<WaitOutcome> acquire()
  {
    SystemRng rng;
    SilentObserver observer;
    const WaitPolicy once{.until = Instant{}, .waits = false, .server_timeout = 5min};
    return wait_and_acquire(*store, spec, alice, once, clock, rng, StopToken::never(), observer);
  }

  std::shared_ptr<FakeServer> server = std::make_shared<FakeServer>();
  SteppedClock clock;
  std::unique_ptr<LockStore> store;
};

}  // namespace

TEST_CASE("lease budget: a lock found gone is no loss only if its job ended before the lease and it was told after")
{
  const LeaseBudget budget({.from = Instant{}, .length = 30s});
  const Instant end = budget.valid_until();
  CHECK(budget.explains_late_release(end - 1ms, end));
  CHECK(budget.explains_late_release(Instant{}, end + 1h));
  CHECK_FALSE(budget.explains_late_release(end, end + 1ms));
  CHECK_FALSE(budget.explains_late_release(end + 1ms, end + 2ms));
  CHECK_FALSE(budget.explains_late_release(end - 2ms, end - 1ms));
}

TEST_CASE("lease budget: the deadlines of leases of every length, whatever --kill-after says")
{
  struct Row {
    Millis length;
    Millis kill_after;
    Millis shorter_by;
    std::int64_t begin, signal, kill, last_resort, end;  // ms since the beginning
  };
  const Row rows[] = {
      {30s, 5s, 0s, 14'698, 24'698, 28'948, 29'198, 29'698},
      {30s, 2s, 0s, 14'698, 27'698, 28'948, 29'198, 29'698},
      {30s, 0s, 0s, 14'698, 28'948, 28'948, 29'198, 29'698},     // not later than KILL
      {30s, 10min, 0s, 14'698, 24'698, 28'948, 29'198, 29'698},  // a sixth of the lease at most
      {30s, 5s, 10s, 4'698, 14'698, 18'948, 19'198, 19'698},     // the server's clock runs ahead
      {100ms, 5s, 0s, 47, 81, 82, 87, 97},
      {60ms, 5s, 0s, 28, 43, 43, 48, 58},  // a sixth is less than the time to die
      {12ms, 5s, 0s, 4, 7, 7, 8, 10},
      {1s, 5s, 0s, 488, 822, 913, 938, 988},
      {1h, 5s, 0s, 1'763'998, 3'558'998, 3'563'248, 3'563'498, 3'563'998},
      {0ms, 5s, 0s, -2, -2, -2, -2, -2},  // a store that gives nothing gives no time
  };
  constexpr Instant from{1h};
  const auto since = [&](Instant when) { return std::chrono::duration_cast<Millis>(when - from).count(); };
  for (const Row& row : rows) {
    CAPTURE(row.length.count());
    CAPTURE(row.kill_after.count());
    const LeaseBudget budget({.from = from, .length = row.length}, row.shorter_by);
    CHECK(since(budget.valid_until()) == row.end);
    CHECK(since(budget.last_resort_at()) == row.last_resort);
    CHECK(since(budget.kill_at()) == row.kill);
    CHECK(since(budget.signal_at(row.kill_after)) == row.signal);
    CHECK(budget.may_begin(from + Millis{row.begin} - 1ms));
    CHECK_FALSE(budget.may_begin(from + Millis{row.begin}));
  }
}

TEST_CASE("lease budget: signal, KILL, the last resort and the end come in this order")
{
  constexpr Instant from{1h};
  for (const Millis length : {100ms, 200ms, 1000ms, 5000ms, 30'000ms, 3'600'000ms}) {
    for (const Millis kill_after : {0ms, 1ms, 100ms, 5000ms, 600'000ms}) {
      CAPTURE(length.count());
      CAPTURE(kill_after.count());
      const LeaseBudget budget({.from = from, .length = length});
      CHECK(budget.signal_at(kill_after) <= budget.kill_at());
      CHECK(budget.kill_at() < budget.last_resort_at());
      CHECK(budget.last_resort_at() < budget.valid_until());
      CHECK(budget.valid_until() < from + length);
      CHECK(budget.may_begin(from));
    }
  }
}

TEST_CASE("half-lease rule: a grant that is always too late is asked for again, given back and not used")
{
  Asked quick(1ms);
  const auto taken = quick.acquire();
  REQUIRE(taken);
  CHECK(std::holds_alternative<Taken>(*taken));

  Asked slow(half_and_more);
  const auto refused = slow.acquire();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::server_not_ready);
  CHECK(slow.server->asked() == Words{"acquire alice:1", "acquire alice:1", "acquire alice:1", "release alice:1"});
  CHECK_FALSE(slow.server->holder());
}

TEST_CASE("half-lease rule: a nested hold that is always granted too late is given back and not used")
{
  Asked slow(half_and_more);
  REQUIRE(slow.store->acquire(spec, alice, {}, {.deadline = far_future, .stop = StopToken::never()}));
  SystemRng rng;
  const Hold nested = Hold::nested_in(alice, rng, 1);
  const auto refused = reenter_lock(*slow.store, spec, nested, 5min, slow.clock, StopToken::never());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::server_not_ready);
  CHECK(slow.server->asked().back() == "release alice:1");
}

TEST_CASE("lease: a grant whose lease began long before it was asked for begins no job")
{
  Asked old(1ms);
  old.server->give_less(0s, 20s);
  const auto refused = old.acquire();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::server_not_ready);
  CHECK_FALSE(old.server->holder());

  REQUIRE(old.store->acquire(spec, alice, {}, {.deadline = far_future, .stop = StopToken::never()}));
  SystemRng rng;
  const auto nested =
      reenter_lock(*old.store, spec, Hold::nested_in(alice, rng, 1), 5min, old.clock, StopToken::never());
  REQUIRE_FALSE(nested);
  CHECK(nested.error().code == ErrorCode::server_not_ready);
}

TEST_CASE("lease: a grant is taken with the lease that the store gave")
{
  Asked brief(1ms);
  brief.server->give_less(25s, 1s);
  const Instant before = brief.clock.now();
  const auto outcome = brief.acquire();
  REQUIRE(outcome);
  const LeaseTerm& lease = std::get<Taken>(*outcome).grant.lease;
  CHECK(lease.length == 5s);
  CHECK((lease.from < before));
}
