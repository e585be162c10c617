// SPDX-License-Identifier: Apache-2.0
// Several leases of one job, which one watchdog renews.
#include "lease/lease.h"

#include "process/process_tree.h"
#include "support/bare_store.h"
#include "support/fake_store.h"
#include "support/stepped_clock.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

const BootClock real;
const Log quiet(Verbosity::quiet);

LockSpec spec_of(const std::string& name, Millis ttl)
{
  return {.name = *LockName::parse(name), .kind = Plain{}, .ttl = ttl, .who = {}, .once = {}};
}

// A granted lock on a server that takes any lock for the same owner.
struct Held {
  Held(LockStore& store, Millis ttl) : spec(spec_of("k", ttl)), lease(store, acquired(store), 10ms, real) {}

  GrantedLock acquired(LockStore& store) const
  {
    const Owner owner = Owner::of("alice");
    const Instant sent_at = real.now();
    REQUIRE(store.acquire(spec, owner, {}, {.deadline = sent_at + 5s, .stop = StopToken::never()}));
    return {.spec = spec, .owner = owner, .lease = {.from = sent_at, .length = spec.ttl}, .listener = {}};
  }

  LockSpec spec;
  Lease lease;
};

std::size_t threads() { return numbers_in("/proc/self/task").size(); }

}  // namespace

TEST_CASE("lease group: the job's deadline is the end of the lease that ends first")
{
  constexpr Millis short_ttl{2s};
  const auto store = store_on(std::make_shared<FakeServer>(), real);
  Held lasting(*store, 60s);
  Held brief(*store, short_ttl);
  std::atomic<int> moves{0};
  std::atomic<bool> counts_on_the_longer{false};
  LeaseGroup group({.consequence = "the job will be stopped",
                    .on_moved =
                        [&](const LeaseBudget& lease) {
                          ++moves;
                          if (lease.valid_until() > real.now() + short_ttl) {
                            counts_on_the_longer = true;
                          }
                        }},
                   real, quiet);
  group.add(lasting.lease);
  group.add(brief.lease);
  wait_until([&] { return group.watch(), group.is_watched(); }, "they are watched");
  wait_until([&] { return moves >= 3; }, "the short lease was renewed");
  group.stop_watchdog();
  CHECK_FALSE(counts_on_the_longer);
}

TEST_CASE("lease group: one thread renews all leases")
{
  const auto server = std::make_shared<FakeServer>();
  const auto store = store_on(server, real);
  std::deque<Held> locks;
  LeaseGroup group({}, real, quiet);
  for (int i = 0; i < 40; ++i) {
    group.add(locks.emplace_back(*store, 1s).lease);
  }
  const std::size_t before = threads();
  wait_until([&] { return group.watch(), group.is_watched(); }, "they are watched");
  CHECK(threads() == before + 1);
  const Instant began = real.now();
  wait_until([&] { return real.now() > began + 1s; }, "the first leases are over");
  group.stop_watchdog();
  CHECK(threads() == before);
  CHECK(group.with_event() == nullptr);
  for (const Held& each : locks) {
    CHECK(each.lease.budget().valid_until() > real.now());
  }
}

namespace {

enum class Mood { fine, lost, hangs, refuses, requested, revoked };

struct World {
  SteppedClock clock;
  std::map<std::string, Mood, std::less<>> moods;  // of the locks; the others are fine
  Millis takes{1};                                 // each request
  bool sends_together = true;
  bool one_fails_all = false;  // a request with a lock that is refused fails for all its locks
  Instant away_until{};        // all locks hang or are refused, as `away` says
  Mood away = Mood::hangs;
  std::size_t requests = 0;
  std::size_t listens = 0;  // in vain
};

// A store whose requests take time of the clock.
class TimedStore final : public BareStore {
 public:
  explicit TimedStore(World& world) : m_world(world) {}

  Result<Renewal> renew(const LockSpec& spec, const Owner& owner, const RenewOptions& options,
                        const CallLimits& limit) override
  {
    const RenewalCall call{.spec = spec, .owner = owner, .options = options};
    return answers({&call, 1}, limit).front();
  }
  std::vector<Result<Renewal>> renew_each(std::span<const RenewalCall> calls, const CallLimits& limit) override
  {
    return m_world.sends_together ? answers(calls, limit) : LockStore::renew_each(calls, limit);
  }
  Result<std::unique_ptr<Listener>> listen(std::span<const LockSpec> specs, const Owner& owner,
                                           const CallLimits& limit) override
  {
    CHECK(limit.deadline > m_world.clock.now());
    ++m_world.listens;
    return BareStore::listen(specs, owner, limit);
  }

 private:
  [[nodiscard]] Mood mood_of(const RenewalCall& call) const
  {
    const auto mood = m_world.moods.find(call.spec.name.text());
    return mood == m_world.moods.end() ? Mood::fine : mood->second;
  }
  std::vector<Result<Renewal>> answers(std::span<const RenewalCall> calls, const CallLimits& limit)
  {
    ++m_world.requests;
    const Instant sent_at = m_world.clock.now();
    const auto is_any = [&](Mood mood) {
      return std::ranges::any_of(calls, [&](const RenewalCall& each) { return mood_of(each) == mood; });
    };
    const Instant back_at = is_any(Mood::hangs)           ? far_future
                            : m_world.away == Mood::hangs ? m_world.away_until
                                                          : sent_at;
    const Millis wait = std::chrono::ceil<Millis>(std::min(limit.deadline, back_at) - sent_at);
    m_world.clock.add(std::max(wait, m_world.takes));
    const bool all_fail = (is_any(Mood::refuses) && m_world.one_fails_all) ||
                          (m_world.away == Mood::refuses ? sent_at : limit.deadline) < m_world.away_until;
    std::vector<Result<Renewal>> all;
    for (const RenewalCall& each : calls) {
      if (all_fail || mood_of(each) == Mood::hangs || mood_of(each) == Mood::refuses) {
        all.emplace_back(Error{ErrorCode::unreachable, "no answer"});
      } else if (mood_of(each) == Mood::lost) {
        all.emplace_back(NotHeld{});
      } else if (mood_of(each) == Mood::revoked) {
        all.emplace_back(NotHeld{.cause = LossCause::revoked});
      } else {
        const bool is_requested = mood_of(each) == Mood::requested;
        all.emplace_back(Renewed{.lease = LeaseTerm{.from = sent_at, .length = each.spec.ttl},
                                 .forced = is_requested ? std::optional(ForceRequest{.by = "eve"}) : std::nullopt});
      }
    }
    return all;
  }

  World& m_world;
};

// Leases of 30 s, watched in the time of the world.
struct Group {
  explicit Group(std::size_t locks, Millis ttl = 30s)
  {
    for (std::size_t i = 0; i < locks; ++i) {
      leases.emplace_back(store,
                          GrantedLock{.spec = spec_of("k" + std::to_string(i), ttl),
                                      .owner = Owner::of("alice"),
                                      .lease = {.from = world.clock.now(), .length = ttl},
                                      .listener = {}},
                          5s, world.clock);
      group.add(leases.back());
    }
  }

  // Returns the leases that had an event.
  std::set<std::string> live_for(Millis time)
  {
    std::set<std::string> over;
    const Instant end = world.clock.now() + time;
    while (world.clock.now() < end) {
      const Instant next = std::min(group.due(), end);
      world.clock.add(std::max(std::chrono::ceil<Millis>(next - world.clock.now()), Millis{0}));
      group.watch();
      for (const Lease* each : group.take_news()) {
        over.insert(each->spec().name.text());
      }
    }
    return over;
  }

  World world;
  TimedStore store{world};
  std::deque<Lease> leases;
  int moves = 0;
  LeaseGroup group{{.on_moved = [this](const LeaseBudget&) { ++moves; }, .has_thread = false}, world.clock, quiet};
};

using Names = std::set<std::string>;

}  // namespace

TEST_CASE("lease group: what is due together is renewed with one request")
{
  Group held(200);
  CHECK(held.live_for(60s).empty());
  CHECK(held.world.requests <= 7);  // every 10 s
  CHECK(held.moves <= 7);
}

TEST_CASE("lease group: one lock that is lost ends no other lease")
{
  Group held(20);
  held.world.sends_together = false;
  held.world.moods["k7"] = Mood::lost;
  CHECK(held.live_for(60s) == Names{"k7"});
  CHECK(std::holds_alternative<Lost>(*held.leases[7].event()));
  CHECK(held.group.with_event() == &held.leases[7]);
  held.group.stop_watchdog();
  CHECK(held.leases[8].budget().valid_until() > held.world.clock.now());
}

TEST_CASE("lease group: a lock whose release is requested is kept until its renewals are refused, or fail for too long")
{
  for (const Mood later : {Mood::lost, Mood::revoked, Mood::hangs}) {
    CAPTURE(static_cast<int>(later));
    Group held(2);
    held.world.moods["k1"] = Mood::requested;
    CHECK(held.live_for(30s) == Names{"k1"});
    CHECK(held.leases[1].is_kept());
    held.world.moods["k1"] = later;
    CHECK(held.live_for(60s).contains("k1") == (later == Mood::lost));  // else the holder stops its job already
    CHECK(held.leases[1].is_lost_later() == (later == Mood::lost));
    CHECK_FALSE(held.leases[1].is_kept());
    CHECK(held.leases[0].is_kept());
  }
  Group revoked_at_once(1);
  revoked_at_once.world.moods["k0"] = Mood::revoked;
  CHECK(revoked_at_once.live_for(30s) == Names{"k0"});
  CHECK(std::holds_alternative<ReleaseRequested>(*revoked_at_once.leases[0].event()));
  CHECK_FALSE(revoked_at_once.leases[0].is_kept());
}

TEST_CASE("lease group: after the loss of one, a lock whose release is requested is renewed on as the others are")
{
  Group held(4);
  held.world.moods["k0"] = Mood::lost;
  held.world.moods["k1"] = Mood::requested;
  held.world.moods["k2"] = Mood::revoked;
  CHECK(held.live_for(11s) == Names{"k0", "k1", "k2"});
  held.group.stop_watchdog();
  held.group.go_on();
  CHECK(held.live_for(60s).empty());
  held.group.stop_watchdog();
  const auto is_held_now = [&](std::size_t i) {
    return held.leases[i].is_kept() && held.leases[i].budget().valid_until() > held.world.clock.now();
  };
  CHECK_FALSE(is_held_now(0));
  CHECK(is_held_now(1));
  CHECK_FALSE(is_held_now(2));
  CHECK(is_held_now(3));
}

TEST_CASE("lease group: answers that come together after the end of the leases extend none of them")
{
  Group held(20);
  held.world.takes = 31s;
  CHECK(held.live_for(50s).size() == 20);
  CHECK(held.moves == 0);
  for (const Lease& each : held.leases) {
    CHECK(std::get<Unconfirmed>(*each.event()).why == "the answer to its renewal came after the end of the lease");
  }
}

TEST_CASE("lease group: locks that cannot be renewed are given up in time, and delay no other lock beyond its lease")
{
  for (const Millis ttl : {Millis{600}, Millis{30'000}}) {
    for (const bool sends_together : {true, false}) {
      for (const bool one_fails_all : {false, true}) {
        for (const Mood mood : {Mood::hangs, Mood::refuses}) {
          CAPTURE(ttl.count());
          CAPTURE(sends_together);
          CAPTURE(one_fails_all);
          Group held(60, ttl);
          held.world.sends_together = sends_together;
          held.world.one_fails_all = one_fails_all;
          held.live_for(ttl);  // all are healthy
          for (const char* bad : {"k0", "k1", "k30", "k59"}) {
            held.world.moods[bad] = mood;
          }
          CHECK(held.live_for(4 * ttl) == Names{"k0", "k1", "k30", "k59"});
          held.group.stop_watchdog();
          for (const Lease& each : held.leases) {
            CHECK((each.event().has_value() || each.budget().valid_until() > held.world.clock.now()));
          }
        }
      }
    }
  }
}

TEST_CASE("lease group: the catch-up before the next lock ends, also where renewals take as long as their period")
{
  Group held(40, 2s);
  held.world.sends_together = false;
  held.world.takes = 20ms;  // 800 ms for all, which are due every 667 ms
  held.live_for(2s);
  const std::size_t before = held.world.requests;
  held.group.watch_all_due(StopToken::never());
  CHECK(held.world.requests - before <= held.leases.size() + 1);
  CHECK(held.group.with_event() == nullptr);
}

TEST_CASE("lease group: no messages are asked for when all leases are over")
{
  for (const std::size_t locks : {std::size_t{1}, std::size_t{20}}) {
    Group held(locks);
    held.world.away_until = far_future;
    std::size_t over = 0;
    std::size_t listens = 0;
    while (over < locks) {
      held.world.clock.add(std::max(std::chrono::ceil<Millis>(held.group.due() - held.world.clock.now()), Millis{0}));
      listens = held.world.listens;
      held.group.watch();
      over += held.group.take_news().size();
    }
    CHECK(held.world.listens == listens);
    held.live_for(60s);
    CHECK(held.world.listens == listens);
  }
}

TEST_CASE("lease group: all leases survive a server that is away for nearly half of the lease, however many they are")
{
  for (const bool sends_together : {true, false}) {
    for (const Mood away : {Mood::hangs, Mood::refuses}) {
      CAPTURE(sends_together);
      CAPTURE(away == Mood::hangs);
      Group held(500);
      held.world.sends_together = sends_together;
      held.live_for(30s);
      held.world.away = away;
      held.world.away_until = held.world.clock.now() + 13s;
      const std::size_t before = held.world.requests;
      held.live_for(13s);
      CHECK(held.world.requests - before <= (sends_together ? 100 : 600));  // every 300 ms, after the first of each
      CHECK(held.live_for(60s).empty());
    }
  }
}
