// SPDX-License-Identifier: Apache-2.0
// The promises of lock/store.h about waiters, kept by every store of the table in stores.h.
#include "contract/tested_store.h"
#include "support/wait_until.h"

#include <algorithm>

using namespace rlock::test;

TEST_SUITE_BEGIN("topology-quick");

STORE_QUEUE_CASE("contract: a lock is granted in the order of the queue")
{
  const Owner holder = Tested::owner();
  const Owner first = Tested::owner();
  const Owner second = Tested::owner();
  REQUIRE(store.granted(store.one(), Tested::spec(), holder));
  const LockSpec spec = Tested::spec();
  const auto first_listens = store.other().listen({&spec, 1}, first, Tested::soon());
  const auto second_listens = store.other().listen({&spec, 1}, second, Tested::soon());
  REQUIRE(first_listens);
  REQUIRE(second_listens);
  CHECK(std::get<Busy>(store.ask(store.other(), spec, first, true)).waiters_ahead == 0);
  CHECK(std::get<Busy>(store.ask(store.other(), spec, second, true)).waiters_ahead == 1);
  store.release(store.one(), holder);
  CHECK(hears(**first_listens));
  CHECK(std::holds_alternative<Busy>(store.ask(store.other(), spec, second, true)));
  CHECK(std::holds_alternative<Granted>(store.ask(store.other(), spec, first, true)));
}

TEST_CASE("contract: a release makes a waiter that listens look")
{
  on_each_store(check_that_a_waiter_hears_the_release);
}

STORE_QUEUE_CASE("contract: a waiter is in the queue until it leaves, and a stranger is not")
{
  const Owner waiter = Tested::owner();
  REQUIRE(store.granted(store.one(), Tested::spec(), Tested::owner()));
  const auto is_queued = [&](const Owner& owner) {
    const auto answer = store.other().is_queued(Tested::spec(), owner, Tested::soon());
    REQUIRE(answer);
    return *answer;
  };
  store.ask(store.other(), Tested::spec(), waiter, true);
  CHECK(is_queued(waiter));
  CHECK_FALSE(is_queued(Tested::owner()));
  CHECK(std::holds_alternative<Dequeued>(store.release(store.other(), waiter)));
  CHECK_FALSE(is_queued(waiter));
  CHECK(store.state().held());
}

STORE_QUEUE_CASE("contract: a waiter that does not listen yet learns that a message has missed it, and keeps its place")
{
  const Owner holder = Tested::owner();
  const Owner next = Tested::owner();
  const Owner late = Tested::owner();
  REQUIRE(store.granted(store.one(), Tested::spec(), holder));
  store.ask(store.other(), Tested::spec(), next, true);
  store.ask(store.other(), Tested::spec(), late, true);
  const auto may_rest = [&] {
    const auto answer = store.other().is_queued(Tested::spec(), late, Tested::soon());
    REQUIRE(answer);
    return *answer;
  };
  CHECK(may_rest());
  if (!std::get<Released>(store.release(store.one(), holder)).passed_on) {
    return;  // a store that hands nothing over has waiters that ask
  }
  CHECK_FALSE(may_rest());  // it was told to watch the hand-over to the next one
  const auto answer = store.ask(store.other(), Tested::spec(), late, true);
  CHECK(std::get<Busy>(answer).waiters_ahead == 0);
  CHECK(std::get<Busy>(answer).watch_in);
  CHECK(may_rest());
}

STORE_QUEUE_CASE("contract: a caller joins no line in which as many wait as it allows, and one in line stays there")
{
  LockSpec bounded = Tested::spec();
  bounded.max_waiting = 2;
  const Owner holder = Tested::owner();
  const Owner first = Tested::owner();
  CHECK(std::holds_alternative<Granted>(store.ask(store.one(), bounded, holder, true)));
  const auto full = [&](const Owner& owner) {
    const auto busy = std::get<Busy>(store.ask(store.other(), bounded, owner, true));
    CHECK((busy.full > 0) == (busy.ticket == 0));
    return busy.full;
  };
  const Owner second = Tested::owner();
  CHECK(full(first) == 0);
  CHECK(full(second) == 0);
  CHECK(full(Tested::owner()) == 2);
  CHECK(full(first) == 0);
  store.release(store.other(), second);
  CHECK(full(Tested::owner()) == 0);
  CHECK(full(Tested::owner()) == 2);
}

STORE_QUEUE_CASE("contract: a waiter with a greater priority stands in front of earlier ones, and gets the lock first")
{
  const LockSpec usual = Tested::spec();
  LockSpec urgent = Tested::spec();
  urgent.who.priority = 7;
  const Owner holder = Tested::owner();
  const Owner early = Tested::owner();
  const Owner late = Tested::owner();
  REQUIRE(store.granted(store.one(), usual, holder));
  const auto early_listens = store.other().listen({&usual, 1}, early, Tested::soon());
  const auto late_listens = store.other().listen({&urgent, 1}, late, Tested::soon());
  REQUIRE(early_listens);
  REQUIRE(late_listens);
  CHECK(std::get<Busy>(store.ask(store.other(), usual, early, true)).waiters_ahead == 0);
  CHECK(std::get<Busy>(store.ask(store.other(), urgent, late, true)).waiters_ahead == 0);
  CHECK(std::get<Busy>(store.ask(store.other(), usual, early, true)).waiters_ahead == 1);
  const auto waiting = store.state().waiting;
  REQUIRE(waiting.size() == 2);
  CHECK(waiting[0].owner == late);
  CHECK(waiting[0].info->priority == 7);
  store.release(store.one(), holder);
  CHECK(hears(**late_listens));
  CHECK(std::holds_alternative<Busy>(store.ask(store.other(), usual, early, true)));
  CHECK(std::holds_alternative<Granted>(store.ask(store.other(), urgent, late, true)));
}

STORE_QUEUE_CASE(
    "contract: inspect shows a waiter that does not listen only where those far back may close their connections")
{
  constexpr std::size_t many = 11;
  const LockSpec spec = Tested::spec();
  REQUIRE(store.granted(store.one(), spec, Tested::owner()));
  std::vector<Owner> waiters;
  for (std::size_t i = 0; i < many; ++i) {
    waiters.push_back(Tested::owner());
    CHECK(std::get<Busy>(store.ask(store.other(), spec, waiters.back(), true)).waiters_ahead == i);
  }
  const auto shown = [&] {
    std::string text;
    for (const Waiter& each : store.state().waiting) {
      const auto place = std::ranges::find(waiters, each.owner) - waiters.begin();
      text += " " + std::to_string(place) + (each.is_connected ? "" : " (away)");
    }
    return text;
  };
  const bool may_close = store.one().traits().spares_connections;
  wait_until([&] { return shown() == (may_close ? " 8 (away) 9 (away) 10 (away)" : ""); }, "it is known who listens");
  const auto last = store.other().listen({&spec, 1}, waiters[many - 1], Tested::soon());
  const auto first = store.other().listen({&spec, 1}, waiters[0], Tested::soon());
  REQUIRE(last);
  REQUIRE(first);
  CHECK(shown() == (may_close ? " 0 8 (away) 9 (away) 10" : " 0 10"));
}

TEST_SUITE_END();
