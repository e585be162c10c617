// SPDX-License-Identifier: Apache-2.0
// What all kinds of lock have in common, on a real server: who has it, who waits, and for how long.
#include "lua/kinds.h"

using namespace rlock::test;

namespace {

// Different layouts, each held by one owner at a time, or by readers: one waits for the other.
bool waits_for(const Kind& asked, const Kind& held)
{
  const auto is_exclusive = [](const Kind& kind) {
    return std::string(kind.what) == "lock" || std::string(kind.what) == "read-write lock";
  };
  return is_exclusive(asked) && is_exclusive(held);
}

std::uint64_t fence(const Reply& granted) { return std::stoull(granted.elements.at(1).text); }

}  // namespace

TEST_CASE("kinds: none takes, renews, releases or breaks what another holds; the plain and the read-write lock wait")
{
  for (const Kind& held : kinds) {
    for (const Kind& asked : kinds) {
      if (std::string(held.what) == asked.what) {
        continue;
      }
      const std::string pair = shown(held) + " asked for as " + shown(asked);
      CAPTURE(pair);
      const ScriptedLock lock(asked.kind);
      REQUIRE(word(lock.acquire_as(held.kind, "a")) == "granted");
      const std::string before = as_text(lock.server.command({"DUMP", "k"}));
      for (const char* owner : {"a", "b"}) {
        CAPTURE(owner);
        const Reply refused = lock.wait(owner);
        const bool waits = waits_for(asked, held);
        CHECK(word(refused) == (waits ? "busy" : "other"));
        if (waits) {
          CHECK(refused.elements.at(2).text == "a");
          CHECK(refused.elements.at(4).text == "host=h\npid=1");
          CHECK(refused.elements.at(7).integer == 1000);  // when to look again
        } else {
          CHECK(refused.elements.at(1).text == held.what);
        }
        CHECK(word(lock.renew(owner)) == "lost");
        CHECK(word(lock.release(owner)) == (waits ? "left" : "lost"));
        const char* const found = waits && owner == std::string("b") ? "changed" : "other";
        CHECK(word(lock.ask(owner)) == found);
        CHECK(word(lock.take_away(owner)) == found);
      }
      CHECK(word(lock.inspect()) == "other");
      CHECK(as_text(lock.server.command({"DUMP", "k"})) == before);
      CHECK(lock.exists(LockKeys(*LockName::parse("k"), asked.kind).queue) == 0);
    }
  }
}

// Its queue gets no message when the lock becomes free, so a dead waiter in front of it must not stop it from looking.
TEST_CASE("kinds: a waiter behind a dead one looks by itself while the lock is held as another kind")
{
  const ScriptedLock lock(Writer{});
  REQUIRE(word(lock.acquire_as(Plain{}, "a")) == "granted");
  lock.wait("dead");
  CHECK(lock.wait("b").elements.at(7).integer == 2000);
  CHECK(lock.wait("c").elements.at(7).integer == 3000);
}

TEST_CASE("kinds: a waiter for one kind is never handed another")
{
  for (const Kind& first : kinds) {
    for (const Kind& second : kinds) {
      if (std::string(first.what) == second.what) {
        continue;
      }
      const std::string pair = shown(second) + " comes while one waits for " + shown(first);
      CAPTURE(pair);
      const ScriptedLock lock(first.kind);
      const ChannelListener waiter = subscribe_as(lock, "w");
      const LockKind all_of_it = std::holds_alternative<Permits>(first.kind)  ? LockKind{Permits{1}}
                                 : std::holds_alternative<Reader>(first.kind) ? LockKind{Writer{}}
                                                                              : first.kind;
      const LockKind wanted = std::holds_alternative<Permits>(first.kind) ? all_of_it : first.kind;
      REQUIRE(word(lock.acquire_as(all_of_it, "a")) == "granted");
      REQUIRE(word(lock.acquire_as(wanted, "w", "wait")) == "busy");
      lock.server.command({"DEL", "k", "{k}:timeout"});  // as if it had expired
      CHECK(word(lock.acquire_as(second.kind, "b")) == "granted");
      CHECK(word(lock.acquire_as(wanted, "w", "wait")) == (waits_for(first, second) ? "busy" : "other"));
      CHECK(word(lock.release_as(second.kind, "b")) == "released");
    }
  }
}

TEST_EACH_KIND("kinds: what has expired is lost, is not made anew, and is there for the next")
{
  lock.acquire("a", "a", 40);
  wait_for_expiry(lock);
  const Reply renewed = lock.renew("a");
  CHECK(word(renewed) == "lost");
  CHECK(renewed.elements.at(1).text == "none");
  CHECK(word(lock.release("a")) == "lost");
  CHECK(lock.holders().empty());
  CHECK(word(lock.acquire("b")) == "granted");
  CHECK(word(lock.renew("a")) == "lost");
  CHECK(word(lock.renew("b")) == "kept");
}

TEST_EACH_KIND("kinds: a resend of an acquire that has expired meanwhile is a new one")
{
  const Reply first = lock.acquire("a", "a", 40);
  wait_for_expiry(lock);
  const Reply second = lock.acquire("a");
  CHECK(word(second) == "granted");
  CHECK(fence(second) > fence(first));
  CHECK(second.elements.at(2).integer == 1);
  CHECK(word(lock.release("a")) == "released");
  CHECK(lock.holders().empty());
}

TEST_EACH_KIND("kinds: renewing pushes back and never shortens")
{
  lock.acquire("a", "a", 1000);
  CHECK(word(lock.renew("a", 20'000)) == "kept");
  CHECK(lock.inspect().elements.at(2).integer > 19'000);
  CHECK(lock.pttl("rlock:holder:{k}") > 19'000);
  CHECK(word(lock.renew("a", 500)) == "kept");
  CHECK(word(lock.renew("a", 0)) == "kept");
  CHECK(lock.inspect().elements.at(2).integer > 19'000);
}

TEST_EACH_KIND("kinds: nested holds go in any order, each once")
{
  lock.acquire("a");
  CHECK(lock.acquire("a", "inner").elements.at(2).integer == 2);
  CHECK(lock.acquire("a", "inner").elements.at(2).integer == 2);
  CHECK(lock.acquire("a", "innermost").elements.at(2).integer == 3);
  CHECK(only(lock.lasting(), may_last(kind.kind)));
  CHECK(word(lock.renew("a", 40'000)) == "kept");
  CHECK(lock.inspect().elements.at(2).integer > 30'000);
  for (const char* sent : {"first", "again"}) {
    CAPTURE(sent);
    CHECK(word(lock.release("a")) == "still_held");
    CHECK(lock.holders().at(0).count == 2);
  }
  for (const char* sent : {"first", "again"}) {
    CAPTURE(sent);
    CHECK(word(lock.release("a", "innermost")) == "still_held");
    CHECK(lock.holders().at(0).count == 1);
  }
  CHECK(word(lock.release("a", "inner")) == "released");
  CHECK(word(lock.release("a", "inner")) == "released");
  CHECK(lock.holders().empty());
  CHECK(lock.exists("rlock:holder:{k}") == 0);
}

TEST_EACH_KIND("kinds: taking it away takes the nested holds as well")
{
  lock.acquire("a");
  lock.acquire("a", "inner");
  CHECK(word(lock.take_away("b")) == "changed");
  CHECK(lock.holders().size() == 1);
  CHECK(word(lock.take_away("a")) == "broken");
  CHECK(lock.holders().empty());
  const Reply renewed = lock.renew("a");
  CHECK(word(renewed) == "lost");
  CHECK(renewed.elements.at(4).text == "eve@h");
  CHECK(word(lock.release("a", "inner")) == "lost");
  CHECK(only(lock.lasting(), may_last(kind.kind)));
}

SCRIPT_CASE("kinds: the fencing number grows over all of them, over a flush and a clock that lags")
{
  std::uint64_t last = 0;
  for (const char* round : {"first", "after a flush", "ahead of every clock"}) {
    CAPTURE(round);
    for (const Kind& kind : kinds) {
      CAPTURE(shown(kind));
      const std::uint64_t number = fence(lock.acquire_as(kind.kind, "a"));
      CHECK(number > last);
      last = number;
      lock.release_as(kind.kind, "a");
      lock.server.command({"DEL", "k"});  // the number of permits
    }
    lock.server.command({"FLUSHALL"});
    if (std::string(round) == "after a flush") {
      last = 9007199254740000;
      lock.server.command({"SET", "redisson_lock_token:{k}", std::to_string(last)});
    }
  }
  CHECK(last == 9007199254740000 + kinds.size());
}

TEST_EACH_KIND("kinds: --min-hold leaves just that, and the next comes when it is over")
{
  lock.acquire("a");
  CHECK(word(lock.release("a", "a", 4000)) == "released");
  CHECK(lock.holders().size() == 1);
  const std::int64_t left = lock.inspect().elements.at(2).integer;
  CHECK(left > 3000);
  CHECK(left <= 4000);
}
