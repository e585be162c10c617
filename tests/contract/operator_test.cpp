// SPDX-License-Identifier: Apache-2.0
// What LockStore promises to operators, kept by every store of the table in stores.h.
#include "contract/tested_store.h"

using namespace rlock::test;

namespace {

ForceCall force_call(const Owner& holder)
{
  return {.name = Tested::spec().name, .kind = Plain{}, .owner = holder, .by = "op", .stands_for = 30s};
}

}  // namespace

TEST_SUITE_BEGIN("topology-quick");

STORE_CASE("contract: a store lists the locks that are held and match")
{
  const auto listed = [&](std::string_view pattern) {
    const auto states = store.one().list(pattern, {.clock = Tested::clock(), .timeout = 5s, .whole = Tested::soon()});
    REQUIRE(states);
    return states->size();
  };
  CHECK(listed("*") == 0);
  REQUIRE(store.granted(store.other(), Tested::spec(), Tested::owner()));
  CHECK(listed("k*") == 1);
  CHECK(listed("x*") == 0);
}

STORE_CASE("contract: a store tells which of some names are held")
{
  const std::vector<LockName> names{*LockName::parse("free"), Tested::spec().name};
  const auto held = [&](std::span<const LockName> among) {
    const auto states =
        store.one().list_held(among, {.clock = Tested::clock(), .timeout = 5s, .whole = Tested::soon()});
    REQUIRE(states);
    return states->size();
  };
  const auto holders = [&](std::span<const LockName> among) {
    const auto states =
        store.one().states_of(among, {.clock = Tested::clock(), .timeout = 5s, .whole = Tested::soon()});
    REQUIRE(states);
    std::vector<std::size_t> numbers;
    for (const LockState& each : *states) {
      numbers.push_back(each.holders.size());
    }
    return numbers;
  };
  CHECK(held(names) == 0);
  CHECK(holders(names) == std::vector<std::size_t>{0, 0});
  REQUIRE(store.granted(store.other(), Tested::spec(), Tested::owner()));
  CHECK(held(names) == 1);
  CHECK(holders(names) == std::vector<std::size_t>{0, 1});
  CHECK(held(std::span(names).first(1)) == 0);
  CHECK(held({}) == 0);
}

STORE_CASE("contract: the renewal of a hold that was taken away says that it is lost")
{
  const Owner holder = Tested::owner();
  REQUIRE(store.granted(store.one(), Tested::spec(), holder));
  const ForceCall call = force_call(holder);
  const auto asked = store.other().force(ForceStep::ask, call, Tested::soon());
  REQUIRE(asked);
  CHECK(std::holds_alternative<ForceHeld>(*asked));
  const auto renewed = store.one().renew(Tested::spec(), holder, {}, Tested::soon());
  REQUIRE(renewed);
  REQUIRE(std::holds_alternative<Renewed>(*renewed));
  CHECK(std::get<Renewed>(*renewed).forced->by == "op");
  const auto taken = store.other().force(ForceStep::take, call, Tested::soon());
  REQUIRE(taken);
  CHECK(std::holds_alternative<ForceBroken>(*taken));
  const auto lost = store.one().renew(Tested::spec(), holder, {}, Tested::soon());
  REQUIRE(lost);
  CHECK(std::holds_alternative<NotHeld>(*lost));
  CHECK(store.granted(store.other(), Tested::spec(), Tested::owner()));
}

STORE_CASE("contract: a hold whose renewals are refused is shown as revoked until it ends")
{
  const Owner holder = Tested::owner();
  REQUIRE(store.granted(store.one(), Tested::spec(), holder));
  const auto is_revoked = [&] {
    const auto state = store.other().inspect(Tested::spec().name, Tested::soon());
    REQUIRE(state);
    REQUIRE(state->holders.size() == 1);
    return state->holders.front().revoked;
  };
  CHECK_FALSE(is_revoked());
  const ForceCall call = force_call(holder);
  REQUIRE(store.other().force(ForceStep::revoke, call, Tested::soon()));
  CHECK(is_revoked());
  store.release(store.one(), holder, {});
  REQUIRE(store.granted(store.one(), Tested::spec(), Tested::owner()));
  CHECK_FALSE(is_revoked());
}

STORE_CASE("contract: the history of a lock has the runs that are over, and those that gave up")
{
  const auto runs = [&] {
    const std::vector<LockName> names{*LockName::parse("free"), Tested::spec().name};
    const auto all = store.other().past_runs(names, LogPart::all,
                                             {.clock = Tested::clock(), .timeout = 5s, .whole = Tested::soon()});
    REQUIRE_MESSAGE(all, all.error().text);
    REQUIRE(all->size() == 2);
    CHECK(all->front().runs.empty());
    std::string text;
    for (const PastRun& run : all->back().runs) {
      text += (text.empty() ? "" : " ") + std::string(run.outcome ? name_of(*run.outcome) : "?") +
              (run.exit_code ? ":" + std::to_string(*run.exit_code) : "");
    }
    return text;
  };
  const Owner first = Tested::owner();
  REQUIRE(store.granted(store.one(), Tested::spec(), first));
  CHECK(runs() == "");
  ::poll(nullptr, 0, 5);  // starts are compared in ms
  REQUIRE(store.other().note_skipped(Tested::spec(), Tested::owner(), SkippedRun{}, Tested::soon()));
  store.release(store.one(), first, {.result = {.exit_code = 3, .fence = 77}});
  CHECK(runs() == "skipped failed:3");
  CHECK(store.other()
            .past_runs(std::vector{Tested::spec().name}, LogPart::all,
                       {.clock = Tested::clock(), .timeout = 5s, .whole = Tested::soon()})
            ->front()
            .runs.back()
            .fence == 77);
  ::poll(nullptr, 0, 5);
  const Owner unused = Tested::owner();
  REQUIRE(store.granted(store.one(), Tested::spec(), unused));
  store.release(store.one(), unused, {.result = {.outcome = Outcome::unused}});
  CHECK(runs() == "skipped failed:3");
  REQUIRE(store.granted(store.one(), Tested::spec(Plain{}, 100ms), Tested::owner()));
  while (store.state().held()) {
    ::poll(nullptr, 0, 10);
  }
  CHECK(runs() == "lost skipped failed:3");
}

TEST_SUITE_END();
