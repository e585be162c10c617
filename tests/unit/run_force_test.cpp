// SPDX-License-Identifier: Apache-2.0
#include "run/force.h"

#include "stores/quorum/quorum_store.h"
#include "support/fake_store.h"
#include "support/integration.h"
#include "support/stepped_clock.h"

using namespace rlock::test;

// A holder releases on one server after the other; a server that is away leaves it open meanwhile which answer is
// right.
TEST_CASE("force: servers of which some have let go and others not yet are asked again")
{
  const BootClock clock;
  std::vector<std::shared_ptr<FakeServer>> servers;
  std::vector<QuorumServer> members;
  for (int i = 0; i < 5; ++i) {
    servers.push_back(std::make_shared<FakeServer>());
    members.push_back({.shown = "s", .store = store_on(servers.back(), clock), .marker = {}});
  }
  QuorumStore store(std::move(members), {}, clock, std::make_unique<SystemRng>());
  const LockName name = *LockName::parse("k");
  const Owner alice = Owner::of("alice");
  const LockSpec spec{.name = name, .kind = Plain{}, .ttl = 10s, .who = {}, .once = {}};
  REQUIRE(store.acquire(spec, alice, {}, {.deadline = clock.now() + 5s, .stop = StopToken::never()}));
  const auto session = [&] {
    return std::count_if(servers.begin(), servers.end(), [](const auto& each) { return each->holder().has_value(); });
  };
  wait_until([&] { return session() == 5; }, "all have granted");
  servers[4]->be(FakeServer::Behavior::down);

  const ForceUnlockRequest order{
      .name = name, .kind = Plain{}, .owner = alice, .by = "op", .grace = 30s, .server_timeout = 5s, .revoked = {}};
  std::optional<Result<ForceEnd>> end;
  std::jthread operating([&] { end.emplace(force_unlock(store, order, clock, StopToken::never())); });
  const auto times = [&](const std::string& word) {
    const auto asked = servers[0]->asked();
    return std::count(asked.begin(), asked.end(), word);
  };
  wait_until([&] { return times("look alice") > 0; }, "the lock is looked at");
  servers[0]->forget_all();
  servers[1]->forget_all();
  const auto looks = times("look alice");
  wait_until([&] { return times("look alice") > looks + 2; }, "it is looked at again");
  servers[2]->forget_all();
  servers[3]->forget_all();
  operating.join();
  REQUIRE(*end);
  CHECK(std::holds_alternative<ReleasedByHolder>(**end));
}

TEST_CASE("force: a holder that stops its job is waited for until KILL and a while, and no longer")
{
  for (const Millis kill_after : {Millis{0}, Millis{5s}, Millis{5min}}) {
    for (const Millis grace : {Millis{100ms}, Millis{1min}}) {
      CAPTURE(kill_after.count());
      CAPTURE(grace.count());
      SteppedClock clock;
      const auto server = std::make_shared<FakeServer>();
      server->have_rlock_holders();
      server->be_stopping(kill_after);
      const auto store = store_on(server, clock);
      const LockName name = *LockName::parse("k");
      const Owner alice = Owner::of("alice");
      const LockSpec spec{.name = name, .kind = Plain{}, .ttl = 10s, .who = {}, .once = {}};
      REQUIRE(store->acquire(spec, alice, {}, {.deadline = clock.now() + 5s, .stop = StopToken::never()}));
      ForcedRelease release(*store,
                            {.name = name,
                             .kind = Plain{},
                             .owner = alice,
                             .by = "op",
                             .grace = grace,
                             .server_timeout = 5s,
                             .revoked = {}},
                            clock);
      const Instant from = clock.now();
      ForcedRelease::Step end;
      while (!(end = release.step(StopToken::never()))) {
        clock.add(std::chrono::ceil<Millis>(release.due() - clock.now()));
      }
      REQUIRE(*end);
      const auto* stuck = std::get_if<StillStopping>(&**end);
      REQUIRE(stuck != nullptr);
      const Millis bound = kill_after + std::max(grace, Millis{5s});
      CHECK(clock.now() - from >= bound);
      CHECK(clock.now() - from < bound + 1s);
      CHECK(stuck->waited >= bound);
      CHECK(server->holder() == "alice");
      CHECK(std::ranges::count(server->asked(), "revoke alice") == 0);
    }
  }
}
