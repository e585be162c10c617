// SPDX-License-Identifier: Apache-2.0
// A freeze in the scripts: it stands first in line, whatever comes late or twice, and only `take` ends it before its time.
#include "lua/kinds.h"

using namespace rlock::test;

namespace {

// One holder at a time.
const std::vector<LockKind> modes{Plain{}, StringLock{}, Writer{}};

// A lock that "holder" has.
struct FreezeFixture : ScriptedLock {
  explicit FreezeFixture(const LockKind& of_kind) : ScriptedLock(of_kind), kind(of_kind)
  {
    REQUIRE(word(acquire("holder")) == "granted");
  }

  Reply freeze(const std::string& owner, const std::string& ticket = "0", const std::string& wait_mode = "first") const
  {
    return eval(scripts_of(kind).acquire, owner,
                {owner, "60000", "host=" + owner + "\npid=1\nlease=60000\nfreeze=why\nauto=0", wait_mode, ticket, "0"});
  }
  [[nodiscard]] Words line() const
  {
    return as_texts(server.command({"ZRANGE", LockKeys(*LockName::parse(name), kind).queue, "0", "-1"}));
  }
  void forget_queue() const
  {
    const LockKeys keys(*LockName::parse(name), kind);
    server.command({"DEL", keys.queue, keys.waiters});
  }
  [[nodiscard]] std::string holder() const
  {
    const std::vector<HolderRow> found = holders();
    return found.empty() ? "" : found.front().owner;
  }

  const LockKind kind;
};

std::string place_and_ticket(const Reply& busy)
{
  return word(busy) + " " + std::to_string(busy.elements.at(5).integer) + " " + busy.elements.at(6).text;
}

// One test case for all modes; `lock` is of each.
#define FREEZE_CASE(title) FREEZE_CASE_NAMED(DOCTEST_ANONYMOUS(freeze_case_), title)
#define FREEZE_CASE_NAMED(body, title)         \
  static void body(const FreezeFixture& lock); \
  TEST_CASE(title)                             \
  {                                            \
    for (const LockKind& kind : modes) {       \
      CAPTURE(kind_of(kind).with_article);     \
      body(FreezeFixture(kind));               \
    }                                          \
  }                                            \
  static void body(const FreezeFixture& lock)

}  // namespace

FREEZE_CASE("freeze script: it stands before all waiters, behind an earlier freeze, and gets the lock first")
{
  const ChannelListener a = subscribe_as(lock, "a");
  const ChannelListener listener_of_first = subscribe_as(lock, "f");
  const ChannelListener listener_of_second = subscribe_as(lock, "g");
  CHECK(word(lock.wait("a")) == "busy");
  CHECK(lock.freeze("f").elements.at(5).integer == 0);
  CHECK(lock.freeze("g").elements.at(5).integer == 1);
  CHECK(word(lock.wait("b")) == "busy");
  CHECK(lock.line() == Words{"f", "g", "a", "b"});
  CHECK(word(lock.release("holder")) == "released");
  CHECK(lock.holder() == "f");
  CHECK(word(lock.freeze("f")) == "granted");
  CHECK(word(lock.wait("a")) == "busy");
  CHECK(word(lock.take_away("f")) == "broken");
  CHECK(lock.holder() == "g");
  CHECK(word(lock.take_away("g")) == "broken");
  CHECK(lock.holder() == "a");
  CHECK(lock.lasting().empty());
}

FREEZE_CASE("freeze script: a request that is sent twice, or whose queue was lost, has the same place and ticket")
{
  CHECK(word(lock.wait("a")) == "busy");
  const Reply first = lock.freeze("f");
  const std::string ticket = first.elements.at(6).text;
  CHECK(std::stoll(ticket) > 1'700'000'000'000'000);  // its arrival, as of every waiter
  CHECK(place_and_ticket(lock.freeze("f")) == place_and_ticket(first));
  CHECK(place_and_ticket(lock.freeze("f", ticket)) == place_and_ticket(first));
  lock.forget_queue();
  const ChannelListener b = subscribe_as(lock, "b");
  CHECK(word(lock.wait("b")) == "busy");
  CHECK(place_and_ticket(lock.freeze("f", ticket)) == place_and_ticket(first));
  CHECK(lock.line() == Words{"f", "b"});
  CHECK(word(lock.release("f")) == "left");
  CHECK(lock.line() == Words{"b"});
}

FREEZE_CASE("freeze script: of a freeze that has just come the arrival counts, and one that was killed is passed over")
{
  const ChannelListener a = subscribe_as(lock, "a");
  CHECK(word(lock.wait("a")) == "busy");
  CHECK(word(lock.freeze("f")) == "busy");
  CHECK(word(lock.release("holder")) == "released");
  CHECK(lock.holder() == "f");  // it may not have subscribed yet
  CHECK(word(lock.take_away("f")) == "broken");
  CHECK(lock.holder() == "a");
  CHECK(word(lock.freeze("dead", "1")) == "busy");  // long ago
  CHECK(word(lock.wait("b")) == "busy");
  const ChannelListener b = subscribe_as(lock, "b");
  CHECK(word(lock.release("a")) == "released");
  CHECK(lock.holder() == "b");
}

FREEZE_CASE("freeze script: no step of force-unlock but take changes a freeze, and a waiter with --latest waits")
{
  CHECK(word(lock.release("holder")) == "released");
  CHECK(word(lock.freeze("f", "0", "try")) == "granted");
  for (const std::string step : {"ask", "join", "look", "revoke"}) {
    CHECK(word(lock.force(step, "f")) == "held");
  }
  CHECK(lock.exists("rlock:force:{k}") == 0);
  CHECK(word(lock.renew("f", 120'000)) == "kept");  // not revoked
  CHECK(word(lock.acquire("n", "n", 30'000, "latest")) == "busy");
  CHECK(word(lock.acquire("m", "m", 30'000, "latest")) == "busy");
  CHECK(word(lock.acquire("t")) == "busy");
  CHECK(lock.holder() == "f");
  CHECK(word(lock.take_away("holder")) == "changed");
  CHECK(lock.holder() == "f");
  CHECK(word(lock.take_away("f")) == "broken");
  CHECK(lock.holder() == "m");
  CHECK(word(lock.take_away("f")) == "changed");  // sent twice: the job of "m" keeps the lock
}

FREEZE_CASE("freeze script: one that is thawed while it has only a claim ends, also where its request is sent again")
{
  const std::string ticket = lock.freeze("f").elements.at(6).text;
  CHECK(word(lock.release("holder")) == "released");
  REQUIRE(lock.holder() == "f");
  REQUIRE(word(lock.take_away("f")) == "broken");
  for (int sent = 0; sent < 2; ++sent) {
    const Reply ended = lock.freeze("f", ticket);
    REQUIRE(word(ended) == "replaced");
    CHECK(ended.elements.at(1).text == "eve@h");
  }
  CHECK(lock.holder() == "");
  CHECK(lock.line() == Words{});
  REQUIRE(word(lock.acquire("a")) == "granted");
  CHECK(word(lock.freeze("f", ticket)) == "replaced");  // also while a job runs
  CHECK(word(lock.freeze("g")) == "busy");
}

FREEZE_CASE("freeze script: a freeze that listens is not passed after a hand-over that was not taken")
{
  const ChannelListener silent = subscribe_as(lock, "silent");
  const ChannelListener f = subscribe_as(lock, "f");
  const ChannelListener a = subscribe_as(lock, "a");
  CHECK(word(lock.wait("silent")) == "busy");
  CHECK(word(lock.wait("a")) == "busy");
  CHECK(word(lock.release("holder")) == "released");
  CHECK(lock.holder() == "silent");
  CHECK(word(lock.freeze("f")) == "busy");
  lock.server.command({"DEL", "k"});  // its claim is over
  CHECK(word(lock.wait("a")) == "busy");
  CHECK(lock.holder() == "f");
}

TEST_CASE("freeze script: it leaves no turn to a foreign client that waits")
{
  const FreezeFixture lock(Plain{});
  const ChannelListener foreign(lock.server, "redisson_lock__channel:{k}");
  for (int number = 0; number < 6; ++number) {
    const std::string freeze = "f" + std::to_string(number);
    const ChannelListener listener = subscribe_as(lock, freeze);
    CHECK(word(lock.freeze(freeze)) == "busy");
    const std::string before = lock.holder();
    CHECK(word(lock.release(before)) == "released");
    CHECK(lock.holder() == freeze);
  }
}
