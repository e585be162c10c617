// SPDX-License-Identifier: Apache-2.0
// The plain and the read-write lock under one name, which exclude each other and have a queue each: neither starves the other.
#include "lua/queued_read_write.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace rlock;
using namespace rlock::test;

namespace {

const std::vector<std::pair<Mode, Mode>> pairs{{Plain{}, Writer{}}, {Plain{}, Reader{}}, {Writer{}, Plain{}}};

// A lock that is held as one kind. A waiter of the other kind listens.
struct TwoKinds : ScriptedLock {
  TwoKinds(const Mode& held, const Mode& waiting)
      : ScriptedLock(held), other(waiting), listener(subscribe_as(*this, "other"))
  {
    acquire("a");
    ask_as_other();
  }
  Reply ask_as_other() const { return acquire_as(other, "other", "wait"); }
  // Lets waiters have the lock by turns until it is left to the other kind. Returns how many had it.
  int turns_until_left()
  {
    for (int turn = 1; turn < 10; ++turn) {
      const std::string owner = "w" + std::to_string(turn), before = turn == 1 ? "a" : "w" + std::to_string(turn - 1);
      ChannelListener waiter = subscribe_as(*this, owner), second = subscribe_as(*this, "v" + owner);
      wait(owner), wait("v" + owner);
      release(before);
      if (has(listener.received(), "look 0")) {
        return turn;
      }
      wait(owner);
      release("v" + owner);  // it leaves
    }
    return 0;
  }

  Mode other;
  ChannelListener listener;
};

}  // namespace

TEST_CASE(
    "other kind: a release that leaves no waiter of its own kind reserves the lock for the waiter of the other one")
{
  for (const auto& [held, waiting] : pairs) {
    CAPTURE(kind_of(held).with_article);
    CAPTURE(kind_of(waiting).with_article);
    TwoKinds lock(held, waiting);
    CHECK(word(lock.release("a")) == "released");
    CHECK(lock.listener.received() == Words{"look 0"});
    CHECK(word(lock.acquire("newcomer")) == "busy");
    CHECK(word(lock.ask_as_other()) == "granted");
  }
}

TEST_CASE("other kind: every third hand-over is left to it")
{
  for (const auto& [held, waiting] : pairs) {
    CAPTURE(kind_of(held).with_article);
    CAPTURE(kind_of(waiting).with_article);
    TwoKinds lock(held, waiting);
    CHECK(lock.turns_until_left() == 3);
    CHECK(word(lock.ask_as_other()) == "granted");
  }
}

TEST_CASE("other kind: a waiter that is dead, or data at its place, changes nothing")
{
  for (const bool is_dead : {true, false}) {
    const ScriptedLock lock;
    lock.acquire("a");
    if (is_dead) {
      lock.acquire_as(Writer{}, "dead", "wait");
    } else {
      lock.server.command({"SET", "rlock:queue-rw:{k}", "data"});
    }
    CHECK(word(lock.release("a")) == "released");
    CHECK(word(lock.acquire("b")) == "granted");
  }
}

TEST_CASE("other kind: readers that still read keep a waiter of the plain lock out, and are not disturbed")
{
  const QueuedReadWrite lock;
  ChannelListener plain = subscribe_as(lock, "p");
  lock.read("r1"), lock.read("r2");
  lock.acquire_as(Plain{}, "p", "wait");
  lock.end_read("r1");
  CHECK(plain.received() == Words{});
  lock.end_read("r2");
  CHECK(plain.received() == Words{"look 0"});
}
