// SPDX-License-Identifier: Apache-2.0
#include "run/force.h"

#include "lock/event_log.h"
#include "stores/quorum/quorum_store.h"
#include "support/bare_store.h"
#include "support/fake_store.h"
#include "support/integration.h"
#include "support/stepped_clock.h"

using namespace rlock::test;

namespace {

// "alice" has the lock when the store is first asked, and later no more.
class LoggingStore final : public BareStore {
 public:
  // The entries of its event log, with blanks for NULs.
  explicit LoggingStore(const std::vector<std::string>& texts)
  {
    for (const std::string& text : texts) {
      std::string entry = std::to_string(m_log.size() + 1) + "000 " + text;
      std::ranges::replace(entry, ' ', '\0');
      m_log.push_back(EventLogEntry::of(std::move(entry)));
    }
  }
  Result<ForceAnswer> force(ForceStep step, const ForceCall& call, const CallLimits&) override
  {
    if (step != ForceStep::ask) {
      return ForceAnswer{ForceFree{}};
    }
    return ForceAnswer{ForceHeld{.holder = {.owner = call.owner, .count = 1, .info = std::nullopt},
                                 .listening = 1,
                                 .lasts = Millis{30'000},
                                 .is_rlock = true}};
  }
  Result<std::vector<std::vector<EventLogEntry>>> read_logs(std::span<const EventLogQuery>, const CallLimits&) override
  {
    return std::vector<std::vector<EventLogEntry>>{m_log};
  }

 private:
  std::vector<EventLogEntry> m_log;
};

}  // namespace

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

TEST_CASE("force: of an owner that was granted the lock again the end after the last grant counts")
{
  struct Row {
    std::vector<std::string> log;
    bool is_broken;
  };
  const Row rows[]{
      {{"acquired alice info -", "forced alice by op"}, true},
      {{"acquired alice info -", "forced alice by op", "acquired bob info -"}, true},
      {{"acquired alice info -", "forced alice by op", "released alice owner alice exit 0"}, true},
      {{"forced alice by op", "acquired alice info -", "released alice owner alice"}, false},
      {{"forced alice by op", "released h owner bob to alice info -", "released alice owner alice"}, false},
      {{"forced alice by op", "acquired alice info -"}, false},
      {{"released alice owner alice", "acquired alice info -", "forced alice by op to bob info -"}, true}};
  for (const Row& row : rows) {
    CAPTURE(row.log.back());
    SteppedClock clock;
    LoggingStore store(row.log);
    const auto end = force_unlock(store,
                                  {.name = *LockName::parse("k"),
                                   .kind = Plain{},
                                   .owner = Owner::of("alice"),
                                   .by = "op",
                                   .grace = 10s,
                                   .server_timeout = 5s,
                                   .revoked = {}},
                                  clock, StopToken::never());
    REQUIRE(end);
    CHECK(std::holds_alternative<Broken>(*end) == row.is_broken);
    CHECK(std::holds_alternative<ReleasedByHolder>(*end) == !row.is_broken);
  }
}
