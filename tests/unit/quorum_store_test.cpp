// SPDX-License-Identifier: Apache-2.0
// A quorum of servers that are down, hung or late as the test says. Over 300 lines: every case needs the same five
// servers.
#include "stores/quorum/quorum_store.h"

#include "support/fake_store.h"
#include "support/integration.h"

#include <atomic>

using namespace rlock::test;
using Behavior = FakeServer::Behavior;

namespace {

const LockSpec spec{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = 10s, .who = {}, .once = {}};
const Owner alice = Owner::of("alice");
const Owner bob = Owner::of("bob");

struct Five {
  BootClock clock;
  std::vector<std::shared_ptr<FakeServer>> servers;
  struct Marker {
    std::atomic<std::int64_t> age_ms = 3'600'000;
    std::atomic<std::int64_t> longest_ms = 0;
    std::atomic<std::int64_t> told_ms = 0;
  };
  std::shared_ptr<Marker> markers = std::make_shared<Marker>();

  explicit Five(std::initializer_list<Behavior> moods = {Behavior::fine, Behavior::fine, Behavior::fine, Behavior::fine,
                                                         Behavior::fine})
  {
    for (const Behavior mood : moods) {
      servers.push_back(std::make_shared<FakeServer>());
      servers.back()->be(mood);
    }
  }

  // The first server has this age; the second knows this longest ttl, and remembers the last one that it was told.
  [[nodiscard]] std::unique_ptr<QuorumStore> store(QuorumPolicy policy = {}, bool guarded = true) const
  {
    std::vector<QuorumServer> members;
    for (const auto& server : servers) {
      members.push_back(
          {.shown = "s" + std::to_string(members.size()), .store = store_on(server, clock), .marker = {}});
    }
    if (guarded) {
      members[0].marker = [all = markers](const MarkerNews&, const CallLimits&) -> Result<DataAge> {
        return DataAge{.age = Millis{all->age_ms}, .longest_ttl = 0ms, .sure = all->age_ms >= 3'600'000};
      };
      members[1].marker = [all = markers](const MarkerNews& news, const CallLimits&) -> Result<DataAge> {
        all->told_ms = news.ttl > 0ms ? news.ttl.count() : all->told_ms.load();
        return DataAge{.age = std::chrono::hours{24}, .longest_ttl = Millis{all->longest_ms}, .sure = true};
      };
    }
    return std::make_unique<QuorumStore>(std::move(members), policy, clock, std::make_unique<SystemRng>());
  }
  [[nodiscard]] CallLimits within(Millis time) const
  {
    return {.deadline = clock.now() + time, .stop = StopToken::never()};
  }
  [[nodiscard]] std::ptrdiff_t held_by(const Owner& owner) const
  {
    return std::count_if(servers.begin(), servers.end(),
                         [&](const auto& server) { return server->holder() == owner.text(); });
  }
};

bool granted(const Result<Attempt>& attempt) { return attempt && std::holds_alternative<Granted>(*attempt); }
bool is_busy(const Result<Attempt>& attempt) { return attempt && std::holds_alternative<Busy>(*attempt); }

}  // namespace

#define FIVE_CASE(title) CASE_WITH(Five, five, title)

FIVE_CASE("quorum store: a lease lasts as long as those of a quorum do, not as long as the ttl that was asked for")
{
  five.servers[0]->give_less(8s, 0s);
  five.servers[1]->give_less(6s, 0s);
  five.servers[2]->give_less(3s, 500ms);
  const auto store = five.store();
  const Instant before = five.clock.now();
  const auto attempt = store->acquire(spec, alice, {}, five.within(5s));
  REQUIRE(granted(attempt));
  const LeaseTerm& lease = std::get<Granted>(*attempt).lease;
  CHECK(lease.length <= 7s);  // two servers gave 10 s, the third 7 s; an answer may have come too late to be counted
  CHECK(lease.length >= 2s);
  if (lease.length == 7s) {
    CHECK((lease.from >= before - 500ms));
    CHECK((lease.from <= five.clock.now() - 500ms));
  }
  const auto renewed = store->renew(spec, alice, {}, five.within(5s));
  REQUIRE(renewed);
  REQUIRE(std::get<Renewed>(*renewed).lease);
  CHECK(std::get<Renewed>(*renewed).lease->length <= 7s);
  const auto checked = store->renew(spec, alice, {.only_checks = true}, five.within(5s));
  REQUIRE(checked);
  CHECK_FALSE(std::get<Renewed>(*checked).lease);
}

FIVE_CASE("quorum store: a lock is taken everywhere, kept, and given back everywhere")
{
  const auto store = five.store();
  CHECK(granted(store->acquire(spec, alice, {}, five.within(5s))));
  wait_until([&] { return five.held_by(alice) == 5; }, "all have granted");
  CHECK(is_busy(store->acquire(spec, bob, {}, five.within(300ms))));
  const auto kept = store->renew(spec, alice, {}, five.within(5s));
  REQUIRE(kept);
  CHECK(std::holds_alternative<Renewed>(*kept));
  const auto released = store->release(spec, alice, {}, five.within(5s));
  REQUIRE(released);
  CHECK(std::holds_alternative<Released>(*released));
  CHECK(five.held_by(alice) == 0);
}

TEST_CASE("quorum store: two of five that are down or hung are not waited for")
{
  for (const Behavior mood : {Behavior::down, Behavior::hung, Behavior::late}) {
    CAPTURE(static_cast<int>(mood));
    const Five five({Behavior::fine, mood, Behavior::fine, mood, Behavior::fine});
    const auto store = five.store();
    const Instant start = five.clock.now();
    CHECK(granted(store->acquire(spec, alice, {}, five.within(60s))));
    CHECK(store->renew(spec, alice, {}, five.within(60s)));
    CHECK(store->release(spec, alice, {}, five.within(60s)));
    CHECK(five.clock.now() - start < 30s);
    CHECK(five.held_by(alice) == 0);  // late servers got the release, too
  }
}

TEST_CASE("quorum store: three that are away are no answer, and nothing is left behind")
{
  const Five down;
  for (const std::size_t server : {1U, 2U, 3U}) {
    down.servers[server]->fail_after(*down.servers[0]);
  }
  const auto attempt = down.store()->acquire(spec, alice, {}, down.within(60s));
  REQUIRE_FALSE(attempt);
  CHECK(attempt.error().code == ErrorCode::unreachable);
  const std::string failed = "3 of 5 servers failed, and it takes 3: connection refused, and 2 more";
  if (attempt.error().text != failed) {
    CHECK(attempt.error().text == "at least " + failed);  // the last server had not answered yet
  }
  const Answers<Attempt> undecided{attempt.error(), std::nullopt, attempt.error()};
  CHECK(no_quorum(undecided, 2).text.starts_with("at least 2 of 3 servers failed, and it takes 2: "));
  const Answers<Attempt> silent{attempt.error(), std::nullopt, std::nullopt};
  CHECK(no_quorum(silent, 2).text.starts_with("3 of 3 servers failed, and it takes 2: "));
  CHECK(down.held_by(alice) == 0);
  CHECK(down.servers[0]->asked() == std::vector<std::string>{"acquire alice", "take back alice"});

  const Five late({Behavior::fine, Behavior::late, Behavior::late, Behavior::late, Behavior::fine});
  {
    const auto store = late.store();
    const Instant start = late.clock.now();
    CHECK_FALSE(store->acquire(spec, alice, {}, late.within(200ms)));
    CHECK(late.clock.now() - start >= 200ms);
    CHECK(late.clock.now() - start < 2s);
  }
  CHECK(late.held_by(alice) == 0);  // an unknown result is not a refusal: it was taken back there as well
}

FIVE_CASE("quorum store: a lock that another owner has on a quorum is busy, and one on fewer servers is granted")
{
  const auto store = five.store();
  REQUIRE(granted(store->acquire(spec, alice, {}, five.within(5s))));
  wait_until([&] { return five.held_by(alice) == 5; }, "all have granted");
  five.servers[0]->forget_all();
  five.servers[1]->forget_all();
  const auto attempt = five.store()->acquire(spec, bob, {}, five.within(300ms));
  REQUIRE(is_busy(attempt));
  CHECK(std::get<Busy>(*attempt).holder->owner == alice);
  CHECK(std::get<Busy>(*attempt).ttl == 30s);
  CHECK(five.held_by(bob) == 0);

  five.servers[2]->forget_all();
  CHECK(granted(five.store()->acquire(spec, bob, {}, five.within(5s))));
  const auto renewal = store->renew(spec, alice, {}, five.within(5s));
  REQUIRE(renewal);
  CHECK(std::holds_alternative<NotHeld>(*renewal));
}

FIVE_CASE("quorum store: a loss is told in the words of a server that knows its cause")
{
  const auto store = five.store();
  REQUIRE(granted(store->acquire(spec, alice, {}, five.within(5s))));
  wait_until([&] { return five.held_by(alice) == 5; }, "all have granted");
  for (const auto& server : five.servers) {
    server->forget_all();
  }
  five.servers[0]->be(Behavior::down);
  five.servers[1]->be(Behavior::down);
  REQUIRE(granted(five.store()->acquire(spec, bob, {}, five.within(5s))));
  five.servers[0]->be(Behavior::fine);
  five.servers[1]->be(Behavior::fine);
  const auto renewal = store->renew(spec, alice, {}, five.within(5s));
  REQUIRE(renewal);
  REQUIRE(std::holds_alternative<NotHeld>(*renewal));
  CHECK(text_of(std::get<NotHeld>(*renewal)) == "now held by bob");
}

FIVE_CASE("quorum store: a lock that too few servers still know of is neither kept nor proven lost")
{
  const auto store = five.store();
  REQUIRE(granted(store->acquire(spec, alice, {}, five.within(5s))));
  wait_until([&] { return five.held_by(alice) == 5; }, "all have granted");
  five.servers[0]->forget_all();
  five.servers[1]->be(Behavior::down);
  five.servers[2]->be(Behavior::down);
  const auto renewal = store->renew(spec, alice, {}, five.within(5s));
  REQUIRE_FALSE(renewal);
  CHECK(renewal.error().code == ErrorCode::unreachable);
}

FIVE_CASE("quorum store: the fencing number grows though the server with the greatest has no part in the next quorum")
{
  five.servers[0]->set_fence(1'000'000);  // its clock is ahead
  five.servers[3]->be(Behavior::down);
  five.servers[4]->be(Behavior::down);
  const auto store = five.store();
  const auto first = store->acquire(spec, alice, {}, five.within(5s));
  REQUIRE(granted(first));
  CHECK(std::get<Granted>(*first).fence == 1'000'001);
  REQUIRE(store->release(spec, alice, {}, five.within(5s)));

  five.servers[0]->be(Behavior::down);
  five.servers[1]->be(Behavior::down);
  five.servers[3]->be(Behavior::fine);
  five.servers[4]->be(Behavior::fine);
  const auto second = five.store()->acquire(spec, bob, {}, five.within(5s));
  REQUIRE(granted(second));
  CHECK(std::get<Granted>(*second).fence > 1'000'001);
}

TEST_CASE("quorum store: a nested hold has the number of its outer one, whatever a late server has counted")
{
  const Five five({Behavior::fine, Behavior::fine, Behavior::fine, Behavior::late, Behavior::down});
  five.servers[3]->set_fence(1000);
  const auto store = five.store();
  const auto outer = store->acquire(spec, alice, {}, five.within(300ms));
  REQUIRE(granted(outer));
  wait_until([&] { return five.servers[3]->holder() == "alice"; }, "the late server has granted it as well");
  five.servers[3]->be(Behavior::hung);
  wait_until([&] { return five.servers[3]->asked().back() == "raise alice"; }, "it has missed what was agreed on");
  CHECK(std::get<Granted>(*outer).fence == 1);
  CHECK(five.servers[3]->fence() == 1001);

  five.servers[1]->be(Behavior::down);
  five.servers[3]->be(Behavior::fine);  // now three servers answer
  Hold hold(alice);
  hold.id = "inner";
  const auto inner = five.store()->reenter(spec, hold, five.within(5s));
  REQUIRE(inner);
  REQUIRE(std::holds_alternative<Granted>(*inner));
  CHECK(std::get<Granted>(*inner).fence == 1);
}

FIVE_CASE("quorum store: a grant whose fencing number too few servers remember is none, and is taken back")
{
  for (const auto& server : five.servers) {
    server->refuse("raise");
  }
  const auto store = five.store();
  const auto attempt = store->acquire(spec, alice, {}, five.within(5s));
  REQUIRE_FALSE(attempt);
  CHECK(attempt.error().code == ErrorCode::unreachable);
  wait_until([&] { return five.held_by(alice) == 0; }, "it is taken back", 30s);
}

TEST_CASE("quorum store: a grant that took longer than the lease is none")
{
  const Five five({Behavior::hung, Behavior::hung, Behavior::hung, Behavior::fine, Behavior::fine});
  LockSpec brief = spec;
  brief.ttl = 100ms;
  const auto store = five.store();
  std::thread thaw([&] {
    std::this_thread::sleep_for(300ms);
    for (const auto& server : five.servers) {
      server->be(Behavior::fine);
    }
  });
  CHECK_FALSE(store->acquire(brief, alice, {}, five.within(200ms)));
  thaw.join();
  wait_until([&] { return five.held_by(alice) == 0; }, "it is taken back");
}

TEST_CASE("quorum store: a server whose data are younger than the ttl does not count, and is waited for as if busy")
{
  const Five five({Behavior::fine, Behavior::fine, Behavior::fine, Behavior::down, Behavior::down});
  five.markers->age_ms = 4'000;  // of a ttl of ten seconds
  const auto attempt = five.store()->acquire(spec, alice, {}, five.within(5s));
  REQUIRE(is_busy(attempt));
  const Busy& busy = std::get<Busy>(*attempt);
  CHECK(has(busy.not_ready, "s0 has had its data for less than 10s and may have forgotten locks; it counts in 6"));
  CHECK(*busy.again_in > 6s);
  CHECK(*busy.again_in < 7s);
  CHECK_FALSE(busy.split_vote);
  CHECK(five.held_by(alice) == 0);  // it was taken back, also from the young server

  CHECK(granted(five.store({}, false)->acquire(spec, Owner::of("unguarded"), {}, five.within(5s))));
}

TEST_CASE("quorum store: the longest ttl that any server knows decides, unless the guard is given")
{
  const Five five({Behavior::fine, Behavior::fine, Behavior::fine, Behavior::down, Behavior::down});
  five.markers->age_ms = 45'000;
  five.markers->longest_ms = 300'000;
  CHECK(is_busy(five.store()->acquire(spec, alice, {}, five.within(5s))));
  CHECK(is_busy(five.store({.restart_guard = 1min})->acquire(spec, alice, {}, five.within(5s))));
  CHECK(granted(five.store({.restart_guard = 44s})->acquire(spec, bob, {}, five.within(5s))));
}

FIVE_CASE("quorum store: the markers are told the leases that the servers gave, not the ttl that was asked for")
{
  const auto store = five.store();
  const auto is_told = [&](Millis lease) {
    wait_until([&] { return Millis{five.markers->told_ms} == lease; }, "the marker is told");
  };
  const auto give = [&](Millis more) {
    for (const auto& server : five.servers) {
      server->give_less(-more, 0s);
    }
  };
  give(5s);
  REQUIRE(granted(store->acquire(spec, alice, {}, five.within(5s))));
  is_told(15s);
  REQUIRE(store->renew(spec, alice, {.only_checks = true}, five.within(5s)));
  give(8s);
  REQUIRE(store->renew(spec, alice, {}, five.within(5s)));
  is_told(18s);
  give(9s);
  REQUIRE(store->reenter(spec, Hold(alice), five.within(5s)));
  is_told(19s);
  REQUIRE(store->release(spec, alice, {}, five.within(5s)));
  give(-4s);
  REQUIRE(granted(store->acquire(spec, bob, {}, five.within(5s))));
  is_told(6s);
}

TEST_CASE("quorum store: where too many servers are away, young ones are not waited for")
{
  const Five five({Behavior::fine, Behavior::down, Behavior::fine, Behavior::down, Behavior::down});
  five.markers->age_ms = 4'000;
  CHECK_FALSE(five.store()->acquire(spec, alice, {}, five.within(5s)));
}

FIVE_CASE("quorum store: two racing clients, again and again: never two holders, and in the end always one")
{
  const auto store_a = five.store();
  const auto store_b = five.store();
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  const auto race = [&](QuorumStore& store, const Owner& owner, int& wins) {
    for (int round = 0; round < 200;) {
      if (!granted(store.acquire(spec, owner, {}, five.within(5s)))) {
        continue;
      }
      overlaps += inside.fetch_add(1) > 0 ? 1 : 0;
      inside -= 1;
      ++wins;
      ++round;
      REQUIRE(store.release(spec, owner, {}, five.within(5s)));
    }
  };
  int wins_a = 0;
  int wins_b = 0;
  std::thread a([&] { race(*store_a, alice, wins_a); });
  race(*store_b, bob, wins_b);
  a.join();
  CHECK(overlaps == 0);
  CHECK(wins_a == 200);
  CHECK(wins_b == 200);
}

TEST_CASE("quorum store: held is what a quorum says or may say, the rest is shown as it is")
{
  const Five five({Behavior::fine, Behavior::fine, Behavior::fine, Behavior::down, Behavior::down});
  REQUIRE(granted(five.store()->acquire(spec, alice, {}, five.within(5s))));
  five.servers[3]->be(Behavior::fine);
  five.servers[4]->be(Behavior::fine);
  auto state = five.store()->inspect(spec.name, five.within(5s));
  REQUIRE(state);
  CHECK(state->held());

  five.servers[0]->forget_all();
  state = five.store()->inspect(spec.name, five.within(5s));
  REQUIRE(state);
  CHECK_FALSE(state->held());
  CHECK(state->partial.size() == 1);

  five.servers[0]->be(Behavior::down);
  state = five.store()->inspect(spec.name, five.within(5s));
  REQUIRE(state);
  CHECK(state->held());  // the silent one may be the third

  const auto broken = five.store()->force(
      ForceStep::take, {.name = spec.name, .kind = Plain{}, .owner = alice, .by = "op", .stands_for = 1s},
      five.within(5s));
  REQUIRE(broken);
  CHECK(std::holds_alternative<ForceBroken>(*broken));
  CHECK(five.held_by(alice) == 0);
}

TEST_CASE("quorum store: a hold is revoked when the servers that may still renew it are no quorum")
{
  const Five five({Behavior::fine, Behavior::fine, Behavior::fine, Behavior::fine, Behavior::fine});
  REQUIRE(granted(five.store()->acquire(spec, alice, {}, five.within(5s))));
  wait_until([&] { return five.held_by(alice) == 5; }, "all have granted");
  const ForceCall call{.name = spec.name, .kind = Plain{}, .owner = alice, .by = "op", .stands_for = 1s};
  const auto revoke_on = [&](std::size_t server) {
    REQUIRE(store_on(five.servers[server], five.clock)->force(ForceStep::revoke, call, five.within(5s)));
  };
  const auto is_revoked = [&] {
    const auto state = five.store()->inspect(spec.name, five.within(5s));
    REQUIRE(state);
    REQUIRE(state->holders.size() == 1);
    return state->holders.front().revoked;
  };
  CHECK_FALSE(is_revoked());
  revoke_on(0);
  revoke_on(1);
  CHECK_FALSE(is_revoked());  // three may renew it
  five.servers[3]->be(Behavior::down);
  CHECK_FALSE(is_revoked());  // the silent one may be the third
  five.servers[2]->forget_all();
  CHECK(is_revoked());  // a server without the hold renews nothing
  revoke_on(4);
  five.servers[3]->be(Behavior::fine);
  CHECK(is_revoked());
}
