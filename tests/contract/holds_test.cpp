// SPDX-License-Identifier: Apache-2.0
// The promises of lock/store.h about one lock and its holders, kept by every store of the table in stores.h.
#include "contract/tested_store.h"
#include "support/wait_until.h"

using namespace rlock;
using namespace rlock::test;

TEST_SUITE_BEGIN("topology-quick");

TEST_CASE("contract: a lock has one holder, and a refusal names it")
{
  on_each_store([](Tested& store) {
    const Owner holder = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(), holder));
    const Attempt refused = store.ask(store.other(), Tested::spec(), Tested::owner());
    REQUIRE(std::holds_alternative<Busy>(refused));
    REQUIRE(std::get<Busy>(refused).holder);
    CHECK(std::get<Busy>(refused).holder->owner == holder);
    CHECK(std::get<Busy>(refused).ttl > Millis{0});
  });
}

TEST_CASE("contract: readers share the lock, a writer does not")
{
  on_each_store([](Tested& store) {
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
  });
}

TEST_CASE("contract: an acquisition that is sent twice is granted twice and counts once")
{
  on_each_store([](Tested& store) {
    const Owner holder = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(), holder));
    const auto again = store.granted(store.one(), Tested::spec(), holder);
    REQUIRE(again);
    CHECK(again->count == 1);
    CHECK(std::holds_alternative<Released>(store.release(store.one(), holder)));
  });
}

TEST_CASE("contract: nested holds are counted, each once")
{
  on_each_store([](Tested& store) {
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
  });
}

TEST_CASE("contract: a lock that the owner does not hold is not entered again, and stays free")
{
  on_each_store([](Tested& store) {
    SystemRng rng;
    const auto entered = store.one().reenter(Tested::spec(), Hold::nested_in(Tested::owner(), rng, 1), Tested::soon());
    REQUIRE(entered);
    CHECK(std::holds_alternative<NotHeld>(*entered));
    CHECK_FALSE(store.state().held());
  });
}

TEST_CASE("contract: only the owner can release")
{
  on_each_store([](Tested& store) {
    const Owner holder = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(), holder));
    CHECK(std::holds_alternative<NotHeld>(store.release(store.other(), Tested::owner())));
    const LockState state = store.state();
    REQUIRE(state.held());
    CHECK(state.holders.front().owner == holder);
  });
}

TEST_CASE("contract: the renewal of a held lock succeeds, that of a lost one says that it is lost")
{
  on_each_store([](Tested& store) {
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
  });
}

TEST_CASE("contract: a hold ends with its ttl, and a renewal lengthens it")
{
  on_each_store([](Tested& store) {
    const Owner holder = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(Plain{}, 1500ms), holder));
    CHECK(store.one().renew(Tested::spec(Plain{}, 3s), holder, {}, Tested::soon()));
    const Millis left = store.state().ttl.value_or(0ms);
    CHECK(left > 1500ms);
    CHECK(left <= 3s);
    wait_until([&] { return !store.state().held(); }, "the ttl is over");
    CHECK(store.granted(store.other(), Tested::spec(), Tested::owner()));
  });
}

TEST_CASE("contract: the fencing number grows with each holder")
{
  on_each_store([](Tested& store) {
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
  });
}

TEST_CASE("contract: inspect shows the holder, its holds and its info")
{
  on_each_store([](Tested& store) {
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
  });
}

TEST_CASE("contract: a release can keep the lock for a while")
{
  on_each_store([](Tested& store) {
    const Owner holder = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(), holder));
    CHECK(std::holds_alternative<Released>(store.release(store.one(), holder, {.keep = 3s})));
    CHECK_FALSE(store.granted(store.other(), Tested::spec(), Tested::owner()));
    wait_until([&] { return store.granted(store.other(), Tested::spec(), Tested::owner()).has_value(); },
               "the lock is kept no longer");
  });
}

TEST_SUITE_END();
