// SPDX-License-Identifier: Apache-2.0
// The promises of lock/store.h about one lock and its holders, kept by every store of the table in stores.h.
#include "contract/tested_store.h"
#include "support/silent_observer.h"
#include "support/wait_until.h"

#include "lease/lease.h"
#include "lock/waiting.h"

#include <atomic>
#include <cstdlib>

using namespace rlock::test;

namespace {

// A client that has waited for the lock, with its watchdog.
class Holding {
 public:
  Holding(Tested& store, Millis ttl, bool is_automatic)
      : m_store(store), m_spec(wanted(ttl, is_automatic)), m_lease(store.one(), taken(), 10ms, Tested::clock())
  {
  }

  Lease& lease() { return m_lease; }

  // Each new lease is compared with what another client is shown, which is the end of the hold, or a bound.
  void renew_until(int times)
  {
    const auto compare = [this](const LeaseBudget& moved) {
      const auto state = m_store.other().inspect(m_spec.name, Tested::soon());
      const bool is_held = state && state->held() && state->ttl;
      m_too_much = m_too_much || !is_held || moved.valid_until() > Tested::clock().now() + *state->ttl;
      ++m_renewals;
    };
    LeaseGroup group({.on_moved = compare}, Tested::clock(), m_log);
    group.add(m_lease);
    wait_until([&] { return group.watch(), m_renewals >= times || group.with_event() != nullptr; },
               "it is renewed, or lost");
  }

  [[nodiscard]] bool counted_on_too_much() const { return m_too_much; }

 private:
  static LockSpec wanted(Millis ttl, bool is_automatic)
  {
    LockSpec spec = Tested::spec(Plain{}, ttl);
    spec.who.automatic = is_automatic;
    return spec;
  }
  GrantedLock taken()
  {
    SystemRng rng;
    SilentObserver observer;
    const WaitPolicy policy{.until = std::nullopt, .waits = true, .server_timeout = 5s};
    auto outcome = wait_and_acquire(m_store.one(), m_spec, Tested::owner(), policy, Tested::clock(), rng,
                                    StopToken::never(), observer);
    REQUIRE(outcome);
    auto& taken = std::get<Taken>(*outcome);
    return {.spec = m_spec,
            .owner = taken.owner,
            .lease = taken.grant.lease,
            .is_claim = taken.is_claim,
            .listener = std::move(taken.listener)};
  }

  Tested& m_store;
  const LockSpec m_spec;
  const Log m_log{Verbosity::quiet};
  std::atomic<int> m_renewals{0};
  std::atomic<bool> m_too_much{false};
  Lease m_lease;
};

}  // namespace

TEST_SUITE_BEGIN("topology-quick");

STORE_CASE("contract: a lock has one holder, and a refusal names it")
{
  const Owner holder = Tested::owner();
  REQUIRE(store.granted(store.one(), Tested::spec(), holder));
  const Attempt refused = store.ask(store.other(), Tested::spec(), Tested::owner());
  REQUIRE(std::holds_alternative<Busy>(refused));
  REQUIRE(std::get<Busy>(refused).holder);
  CHECK(std::get<Busy>(refused).holder->owner == holder);
  CHECK(std::get<Busy>(refused).ttl > Millis{0});
}

STORE_CASE("contract: readers share the lock, a writer does not")
{
  const Owner reader = Tested::owner();
  const Owner second = Tested::owner();
  CHECK(store.granted(store.one(), Tested::spec(Reader{}), reader));
  CHECK(store.granted(store.other(), Tested::spec(Reader{}), second));
  CHECK_FALSE(store.granted(store.other(), Tested::spec(Writer{}), Tested::owner()));
  for (const Owner& each : {reader, second}) {
    const auto released = store.one().release(Tested::spec(Reader{}), each, {}, Tested::soon());
    REQUIRE(released);
    CHECK(std::holds_alternative<Released>(*released));
  }
  CHECK(store.granted(store.other(), Tested::spec(Writer{}), Tested::owner()));
}

STORE_CASE("contract: an acquisition that is sent twice is granted twice and counts once")
{
  const Owner holder = Tested::owner();
  REQUIRE(store.granted(store.one(), Tested::spec(), holder));
  const auto again = store.granted(store.one(), Tested::spec(), holder);
  REQUIRE(again);
  CHECK(again->count == 1);
  CHECK(std::holds_alternative<Released>(store.release(store.one(), holder)));
}

STORE_CASE("contract: nested holds are counted, each once")
{
  const Owner holder = Tested::owner();
  SystemRng rng;
  const Hold nested = Hold::nested_in(holder, rng, 1);
  REQUIRE(store.granted(store.one(), Tested::spec(), holder));
  for (int sent = 0; sent < 2; ++sent) {
    const auto entered = store.other().reenter(Tested::spec(), nested, Tested::soon());
    REQUIRE(entered);
    REQUIRE(std::holds_alternative<Granted>(*entered));
    CHECK(std::get<Granted>(*entered).count == 2);
  }
  const Release inner = store.release(store.other(), nested);
  REQUIRE(std::holds_alternative<StillHeld>(inner));
  CHECK(std::get<StillHeld>(inner).count == 1);
  CHECK(std::holds_alternative<Released>(store.release(store.one(), holder)));
  CHECK_FALSE(store.state().held());
}

STORE_CASE("contract: a lock that the owner does not hold is not entered again, and stays free")
{
  SystemRng rng;
  const auto entered = store.one().reenter(Tested::spec(), Hold::nested_in(Tested::owner(), rng, 1), Tested::soon());
  REQUIRE(entered);
  CHECK(std::holds_alternative<NotHeld>(*entered));
  CHECK_FALSE(store.state().held());
}

STORE_CASE("contract: only the owner can release")
{
  const Owner holder = Tested::owner();
  REQUIRE(store.granted(store.one(), Tested::spec(), holder));
  CHECK(std::holds_alternative<NotHeld>(store.release(store.other(), Tested::owner())));
  const LockState state = store.state();
  REQUIRE(state.held());
  CHECK(state.holders.front().owner == holder);
}

STORE_CASE("contract: a client releases the hold of an owner that another client took since it looked")
{
  const Owner earlier = Tested::owner();
  const Owner owner = Tested::owner();
  REQUIRE(store.granted(store.other(), Tested::spec(), earlier));
  REQUIRE_FALSE(store.granted(store.one(), Tested::spec(), owner));
  store.release(store.other(), earlier);
  REQUIRE(store.granted(store.other(), Tested::spec(), owner));
  CHECK(was_held(store.release(store.one(), owner)));
  CHECK_FALSE(store.state().held());
}

STORE_CASE("contract: the renewal of a held lock succeeds, that of a lost one says that it is lost")
{
  const Owner holder = Tested::owner();
  REQUIRE(store.granted(store.one(), Tested::spec(), holder));
  const auto renewed = store.one().renew(Tested::spec(), holder, {}, Tested::soon());
  REQUIRE(renewed);
  CHECK(std::holds_alternative<Renewed>(*renewed));
  store.release(store.one(), holder);
  REQUIRE(store.granted(store.other(), Tested::spec(), Tested::owner()));
  const auto lost = store.one().renew(Tested::spec(), holder, {}, Tested::soon());
  REQUIRE(lost);
  CHECK(std::holds_alternative<NotHeld>(*lost));
}

STORE_CASE("contract: a hold ends with its ttl, and a renewal lengthens it")
{
  const Owner holder = Tested::owner();
  REQUIRE(store.granted(store.one(), Tested::spec(Plain{}, 1s), holder));
  CHECK(store.one().renew(Tested::spec(Plain{}, 2s), holder, {}, Tested::soon()));
  const Millis left = store.state().ttl.value_or(0ms);
  CHECK(left > 1s);
  CHECK(left <= 2s);
  wait_until([&] { return !store.state().held(); }, "the ttl is over");
  CHECK(store.granted(store.other(), Tested::spec(), Tested::owner()));
}

namespace {

// Fails where the holder would count on its lease for longer than the store shows to others.
void ends_before_the_hold(Tested& store, const LeaseTerm& lease)
{
  const LockState state = store.state();
  REQUIRE(state.held());
  REQUIRE(state.ttl);
  CHECK((LeaseBudget(lease).valid_until() <= Tested::clock().now() + *state.ttl));
}

}  // namespace

STORE_CASE("contract: a grant, a nested one and a renewal tell a lease that ends before the hold; a check none")
{
  const Owner holder = Tested::owner();
  SystemRng rng;
  const auto grant = store.granted(store.one(), Tested::spec(Plain{}, 10s), holder);
  REQUIRE(grant);
  CHECK(grant->lease.length > 0ms);
  ends_before_the_hold(store, grant->lease);
  const auto entered = store.one().reenter(Tested::spec(Plain{}, 20s), Hold::nested_in(holder, rng, 1), Tested::soon());
  REQUIRE(entered);
  ends_before_the_hold(store, std::get<Granted>(*entered).lease);
  const auto renewed = store.one().renew(Tested::spec(Plain{}, 30s), holder, {}, Tested::soon());
  REQUIRE(renewed);
  REQUIRE(std::get<Renewed>(*renewed).lease);
  ends_before_the_hold(store, *std::get<Renewed>(*renewed).lease);
  const Millis left = *store.state().ttl;
  const auto checked = store.one().renew(Tested::spec(Plain{}, 10min), holder, {.only_checks = true}, Tested::soon());
  REQUIRE(checked);
  CHECK_FALSE(std::get<Renewed>(*checked).lease);
  CHECK(*store.state().ttl <= left);
}

namespace {

// A bucket knows the time in whole seconds, so a lease of two seconds leaves too little for a job.
Millis short_ttl()
{
  const char* const on = std::getenv("RLOCK_TEST_ON");
  return on != nullptr && std::string_view(on) == "s3" ? 6s : 2s;
}

void counts_on_no_more_than_is_shown(Tested& store, bool is_automatic)
{
  Holding holding(store, short_ttl(), is_automatic);
  ends_before_the_hold(store, holding.lease().budget().term());
  holding.renew_until(3);
  CHECK_FALSE(holding.lease().event());
  CHECK(store.state().held());
  CHECK_FALSE(holding.counted_on_too_much());
}

}  // namespace

TEST_CASE("contract: a holder counts on no more than the store gave, while it waits, holds and renews")
{
  on_each_store([](Tested& store) { counts_on_no_more_than_is_shown(store, true); });
}

TEST_CASE("contract: a holder of a lease for which no job stands counts on no more than the store gave, too")
{
  on_each_store([](Tested& store) { counts_on_no_more_than_is_shown(store, false); });
}

STORE_CASE("contract: the fencing number grows with each holder")
{
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    LockStore& client = i % 2 == 0 ? store.one() : store.other();
    const Owner holder = Tested::owner();
    const auto grant = store.granted(client, Tested::spec(), holder);
    REQUIRE(grant);
    CHECK(grant->fence > last);
    last = grant->fence;
    store.release(client, holder);
  }
}

STORE_CASE("contract: inspect shows the holder, its holds and its info")
{
  CHECK_FALSE(store.state().held());
  const Owner holder = Tested::owner();
  REQUIRE(store.granted(store.one(), Tested::spec(), holder));
  const LockState state = store.state();
  REQUIRE(state.holders.size() == 1);
  CHECK(state.holders.front().owner == holder);
  CHECK(state.holders.front().count == 1);
  REQUIRE(state.holders.front().info);
  CHECK(state.holders.front().info->host == "h");
  REQUIRE(state.holders.front().age);
  CHECK(*state.holders.front().age >= 0ms);
  CHECK(*state.holders.front().age < 10min);
}

STORE_CASE("contract: a store keeps a lock after its release, and no other client gets it for a while")
{
  const Owner holder = Tested::owner();
  REQUIRE(store.granted(store.one(), Tested::spec(), holder));
  CHECK(std::holds_alternative<Released>(store.release(store.one(), holder, {.keep = 1500ms})));
  CHECK_FALSE(store.granted(store.other(), Tested::spec(), Tested::owner()));
  wait_until([&] { return store.granted(store.other(), Tested::spec(), Tested::owner()).has_value(); },
             "the lock is kept no longer");
}

TEST_SUITE_END();
