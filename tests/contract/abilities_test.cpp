// SPDX-License-Identifier: Apache-2.0
// The promises of lock/abilities.h, kept by every store of the table in stores.h that offers the ability.
#include "contract/tested_store.h"

#include "lock/abilities.h"

using namespace rlock;
using namespace rlock::test;

TEST_SUITE_BEGIN("topology-quick");

TEST_CASE("contract: where a store lists locks, it lists those that are held and match")
{
  on_each_store([](Tested& store) {
    if (store.one().listing() == nullptr) {
      return;
    }
    const auto listed = [&](std::string_view pattern) {
      const auto states =
          store.one().listing()->list(pattern, {.clock = Tested::clock(), .timeout = 5s, .whole = Tested::soon()});
      REQUIRE(states);
      return states->size();
    };
    CHECK(listed("*") == 0);
    REQUIRE(store.granted(store.other(), Tested::spec(), Tested::owner()));
    CHECK(listed("k*") == 1);
    CHECK(listed("x*") == 0);
  });
}

TEST_CASE("contract: where a store lists locks, it tells which of some names are held")
{
  on_each_store([](Tested& store) {
    if (store.one().listing() == nullptr) {
      return;
    }
    const std::vector<LockName> names{*LockName::parse("free"), Tested::spec().name};
    const auto held = [&](std::span<const LockName> among) {
      const auto states =
          store.one().listing()->held_among(among, {.clock = Tested::clock(), .timeout = 5s, .whole = Tested::soon()});
      REQUIRE(states);
      return states->size();
    };
    CHECK(held(names) == 0);
    REQUIRE(store.granted(store.other(), Tested::spec(), Tested::owner()));
    CHECK(held(names) == 1);
    CHECK(held(std::span(names).first(1)) == 0);
    CHECK(held({}) == 0);
  });
}

TEST_CASE("contract: where a store takes locks away, the renewal of the hold says that it is lost")
{
  on_each_store([](Tested& store) {
    ForceUnlock* const force = store.other().force_unlock();
    if (force == nullptr) {
      return;
    }
    const Owner holder = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(), holder));
    const ForceCall call{.name = Tested::spec().name, .mode = Plain{}, .owner = holder, .by = "op", .stands_for = 30s};
    const auto asked = force->force(ForceStep::ask, call, Tested::soon());
    REQUIRE(asked);
    CHECK(std::holds_alternative<ForceHeld>(*asked));
    const auto renewed = store.one().renew(Tested::spec(), holder, Tested::soon());
    REQUIRE(renewed);
    REQUIRE(std::holds_alternative<Renewed>(*renewed));
    CHECK(std::get<Renewed>(*renewed).forced->by == "op");
    const auto taken = force->force(ForceStep::take, call, Tested::soon());
    REQUIRE(taken);
    CHECK(std::holds_alternative<ForceBroken>(*taken));
    const auto lost = store.one().renew(Tested::spec(), holder, Tested::soon());
    REQUIRE(lost);
    CHECK(std::holds_alternative<NotHeld>(*lost));
    CHECK(store.granted(store.other(), Tested::spec(), Tested::owner()));
  });
}

TEST_SUITE_END();
