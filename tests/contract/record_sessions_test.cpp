// SPDX-License-Identifier: Apache-2.0
// Stores whose holds end with presences, in the memory of the test program: what clients, whose clocks are wrong, see of each other.
#include "contract/tested_store.h"
#include "engine/bound_owners.h"
#include "engine/record_codec.h"
#include "engine/record_host.h"
#include "engine/script_store.h"
#include "run/force.h"
#include "support/test.h"

#include <thread>

using namespace rlock::test;

namespace {

constexpr std::int64_t hour_us = 3'600'000'000;

// A store with clients whose clocks differ by hours.
struct Sessions {
  std::string name = "presence-" + std::to_string(++last);
  std::unique_ptr<LockStore> early = client(-hour_us);
  std::unique_ptr<LockStore> late = client(hour_us);
  Owner owner = Tested::owner();
  Owner other = Tested::owner();
  static inline int last = 0;

  [[nodiscard]] std::unique_ptr<LockStore> client(std::int64_t ahead_us) const
  {
    auto host = std::make_unique<record::RecordHost>(session_backend(name, Tested::clock(), ahead_us), Tested::clock(),
                                                     std::make_unique<SystemRng>());
    return std::make_unique<ScriptStore>(std::move(host), Tested::clock());
  }
  [[nodiscard]] std::size_t presences() const { return presences_in(name, Tested::clock()); }
  [[nodiscard]] std::string version() const
  {
    return session_backend(name, Tested::clock())->read("k", Tested::soon())->version;
  }
  // As an operator of the store may end the sessions of clients.
  void end_presences() const
  {
    const auto backend = session_backend(name, Tested::clock());
    const auto record = record::decode(backend->read("k", Tested::soon())->bytes);
    REQUIRE(record);
    for (const record::PresenceId& each : record::presences_in(record->bindings)) {
      REQUIRE(backend->presences()->remove(each, Tested::soon()));
    }
  }
  static LockSpec request(Millis ttl, LockKind kind = Plain{})
  {
    LockSpec wanted = Tested::spec(kind, ttl);
    wanted.who.automatic = true;
    return wanted;
  }
  static bool takes(LockStore& store, const LockSpec& wanted, const Owner& owner, bool queues = false)
  {
    const auto answer = store.acquire(wanted, owner, {.queues = queues}, Tested::soon());
    REQUIRE_MESSAGE(answer, answer.error().text);
    return std::holds_alternative<Granted>(*answer);
  }
  static bool keeps(LockStore& store, const LockSpec& wanted, const Owner& owner)
  {
    const auto answer = store.renew(wanted, owner, {}, Tested::soon());
    REQUIRE_MESSAGE(answer, answer.error().text);
    return std::holds_alternative<Renewed>(*answer);
  }
  static Release lets_go(LockStore& store, const LockSpec& wanted, const Owner& owner, Millis keep = Millis{0})
  {
    const auto answer = store.release(wanted, owner, {.keep = keep}, Tested::soon());
    REQUIRE_MESSAGE(answer, answer.error().text);
    return *answer;
  }
};

template <typename Condition>
void wait_until(const Condition& is_true)
{
  const Instant until = Tested::clock().now() + 10s;
  while (!is_true()) {
    REQUIRE(Tested::clock().now() < until);
    std::this_thread::sleep_for(10ms);
  }
}

}  // namespace

#define PRESENCE_CASE(title) CASE_WITH(Sessions, store, title)

TEST_CASE("presence: a hold ends with the presence of its owner, whatever the clocks of the clients say")
{
  for (const LockKind& kind :
       {LockKind(Plain{}), LockKind(Writer{}), LockKind(Reader{}), LockKind(Permits{1}), LockKind(StringLock{})}) {
    CAPTURE(kind.index());
    Sessions store;
    const LockSpec short_one = Sessions::request(300ms, kind);
    LockSpec next = short_one;
    next.kind = std::holds_alternative<Reader>(kind) ? LockKind(Writer{}) : kind;
    const Instant sent_at = Tested::clock().now();
    REQUIRE(Sessions::takes(*store.early, short_one, store.owner));
    CHECK(store.presences() == 1);
    wait_until([&] { return Sessions::takes(*store.late, next, store.other); });
    CHECK(Tested::clock().now() >= sent_at + 300ms);
    CHECK(!Sessions::keeps(*store.early, short_one, store.owner));
  }
}

// The clock of the client that looks is behind, so its scripts do not end the hold.
TEST_CASE("presence: a hold ends with a presence that is removed, long before its ttl")
{
  for (const LockKind& kind :
       {LockKind(Plain{}), LockKind(Writer{}), LockKind(Reader{}), LockKind(Permits{1}), LockKind(StringLock{})}) {
    CAPTURE(kind.index());
    Sessions store;
    LockSpec next = Sessions::request(30s, kind);
    REQUIRE(Sessions::takes(*store.late, next, store.owner));
    next.kind = std::holds_alternative<Reader>(kind) ? LockKind(Writer{}) : kind;
    CHECK_FALSE(Sessions::takes(*store.early, next, store.other));
    store.end_presences();
    CHECK(Sessions::takes(*store.early, next, store.other));
  }
}

PRESENCE_CASE("presence: a hold that is renewed lasts, and its record is not written for that")
{
  const LockSpec wanted = Sessions::request(1500ms);
  REQUIRE(Sessions::takes(*store.early, wanted, store.owner));
  const std::string version = store.version();
  for (const Instant until = Tested::clock().now() + 2s; Tested::clock().now() < until;) {
    CHECK(Sessions::keeps(*store.early, wanted, store.owner));
    CHECK(!Sessions::takes(*store.late, wanted, store.other));
    std::this_thread::sleep_for(50ms);
  }
  CHECK(store.version() == version);
  CHECK(std::holds_alternative<Released>(Sessions::lets_go(*store.early, wanted, store.owner)));
  CHECK(store.presences() == 0);
}

PRESENCE_CASE("presence: another process renews by the token, with a presence of its own")
{
  REQUIRE(Sessions::takes(*store.early, Sessions::request(1500ms), store.owner));
  REQUIRE(Sessions::keeps(*store.late, Sessions::request(20s), store.owner));
  wait_until([&] { return store.presences() == 1; });  // the first one has ended
  const auto third = store.client(0);
  CHECK(!Sessions::takes(*third, Sessions::request(300ms), store.other));
  CHECK(std::holds_alternative<Released>(Sessions::lets_go(*store.early, Sessions::request(20s), store.owner)));
}

PRESENCE_CASE("presence: a waiter that was handed the lock has it for as long as its presence lasts")
{
  const LockSpec wanted = Sessions::request(1500ms);
  REQUIRE(Sessions::takes(*store.early, wanted, store.owner));
  REQUIRE(!Sessions::takes(*store.late, wanted, store.other, true));
  const auto third = store.client(0);
  CHECK(std::holds_alternative<Released>(Sessions::lets_go(*store.early, wanted, store.owner)));
  const Owner stranger = Tested::owner();
  CHECK(!Sessions::takes(*third, wanted, stranger));
  wait_until([&] { return Sessions::takes(*third, wanted, stranger); });  // the waiter has died
  CHECK(store.presences() == 1);
}

PRESENCE_CASE("presence: a released lock stays taken for --min-hold, which nobody keeps")
{
  const LockSpec wanted = Sessions::request(30s);
  REQUIRE(Sessions::takes(*store.early, wanted, store.owner));
  const Instant sent_at = Tested::clock().now();
  CHECK(std::holds_alternative<Released>(Sessions::lets_go(*store.early, wanted, store.owner, 1500ms)));
  store.early.reset();
  CHECK(!Sessions::takes(*store.late, wanted, store.other));
  wait_until([&] { return Sessions::takes(*store.late, wanted, store.other); });
  CHECK(Tested::clock().now() >= sent_at + 1500ms);
}

PRESENCE_CASE("presence: a revoked hold ends when its last proof has run out, though its presence lives")
{
  const LockSpec wanted = Sessions::request(1500ms);
  REQUIRE(Sessions::takes(*store.early, wanted, store.owner));
  const ForceCall call{.name = wanted.name, .kind = Plain{}, .owner = store.owner, .by = "op", .stands_for = 10s};
  const auto is_free = [&] {
    const auto answer = store.late->force(ForceStep::revoke, call, Tested::soon());
    REQUIRE_MESSAGE(answer, answer.error().text);
    CHECK(!Sessions::keeps(*store.early, wanted, store.owner));  // proves the presence all the same
    return !std::holds_alternative<ForceHeld>(*answer);
  };
  const Instant asked_at = Tested::clock().now();
  CHECK(!is_free());
  wait_until(is_free);
  CHECK(Tested::clock().now() >= asked_at + 1500ms);
  CHECK(Sessions::takes(*store.late, wanted, store.other));
}

PRESENCE_CASE("presence: an attempt that is refused makes no presence, and one that gives up leaves none")
{
  const LockSpec wanted = Sessions::request(30s);
  REQUIRE(Sessions::takes(*store.early, wanted, store.owner));
  REQUIRE(!Sessions::takes(*store.late, wanted, store.other));
  CHECK(store.presences() == 1);
  REQUIRE(!Sessions::takes(*store.late, wanted, store.other, true));
  CHECK(store.presences() == 2);
  CHECK(std::holds_alternative<Dequeued>(Sessions::lets_go(*store.late, wanted, store.other)));
  CHECK(store.presences() == 1);
}

TEST_CASE("presence: another client sees a ttl no less than what the owner counts on, and no more than its lease")
{
  for (const bool is_automatic : {true, false}) {
    CAPTURE(is_automatic);
    Sessions store;
    const auto holder = store.client(0);
    const auto observer = store.client(0);
    LockSpec wanted = Sessions::request(1510ms);  // of which the store makes a longer one
    wanted.who.automatic = is_automatic;
    // The client's clocks are read one after the other (Snapshot::time_at), so the end may be shown later by the time that the call took.
    const auto is_a_bound = [&](const LeaseTerm& lease, Instant called_at) {
      const Millis call = std::chrono::ceil<Millis>(Tested::clock().now() - called_at);
      const auto state = observer->inspect(wanted.name, Tested::soon());
      REQUIRE(state);
      REQUIRE(state->ttl);
      CHECK((LeaseBudget(lease).valid_until() <= Tested::clock().now() + *state->ttl));
      CHECK(*state->ttl <= lease.length + call);
    };
    const Instant acquired_at = Tested::clock().now();
    const auto taken = holder->acquire(wanted, store.owner, {}, Tested::soon());
    REQUIRE(taken);
    is_a_bound(std::get<Granted>(*taken).lease, acquired_at);
    std::this_thread::sleep_for(35ms);  // the ttl that is asked for now ends before the lease that the store gave
    const Instant renewed_at = Tested::clock().now();
    const auto renewed = holder->renew(wanted, store.owner, {}, Tested::soon());
    REQUIRE(renewed);
    is_a_bound(*std::get<Renewed>(*renewed).lease, renewed_at);
  }
}

TEST_CASE("presence: force-unlock tells a hold that has ended from one that was released")
{
  for (const bool releases : {false, true}) {
    CAPTURE(releases);
    Sessions store;
    const LockSpec wanted = Sessions::request(600ms);
    REQUIRE(Sessions::takes(*store.early, wanted, store.owner));
    const ForceUnlockRequest order{.name = wanted.name,
                                   .kind = Plain{},
                                   .owner = store.owner,
                                   .by = "op",
                                   .grace = 20ms,
                                   .server_timeout = 5s,
                                   .revoked = [&](const ForceHeld&, bool) {
                                     releases&& was_held(Sessions::lets_go(*store.early, wanted, store.owner));
                                   }};
    const auto end = force_unlock(*store.late, order, Tested::clock(), StopToken::never());
    REQUIRE_MESSAGE(end, end.error().text);
    CHECK(std::holds_alternative<ForceExpired>(*end) == !releases);
    CHECK(std::holds_alternative<ReleasedByHolder>(*end) == releases);
  }
}
