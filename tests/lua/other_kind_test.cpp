// SPDX-License-Identifier: Apache-2.0
// The plain and the read-write lock under one name, which exclude each other and have a queue each: neither starves the other.
#include "lua/queued_read_write.h"

using namespace rlock::test;

namespace {

constexpr std::chrono::milliseconds kind_turn{50};  // KIND_TURN of lua/lib/queue.lua

const std::vector<std::pair<LockKind, LockKind>> pairs{{Plain{}, Writer{}}, {Plain{}, Reader{}}, {Writer{}, Plain{}}};

// A lock that is held as one kind. A waiter of the other kind listens.
struct TwoKinds : ScriptedLock {
  TwoKinds(const LockKind& held, const LockKind& waiting)
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

  LockKind other;
  ChannelListener listener;
};

}  // namespace

TEST_CASE("other kind: a release that leaves no waiter of its own kind reserves the lock for a waiter of the other one")
{
  for (const auto& pair : pairs) {
    const auto& held = pair.first;
    const auto& waiting = pair.second;
    CAPTURE(kind_of(held).with_article);
    CAPTURE(kind_of(waiting).with_article);
    const auto are_asked_in_time = [&] {
      TwoKinds lock(held, waiting);
      const auto began = std::chrono::steady_clock::now();
      const std::string released = word(lock.release("a"));
      const std::string refused = word(lock.acquire("newcomer"));
      const std::string granted = word(lock.ask_as_other());
      const bool in_time = std::chrono::steady_clock::now() - began < kind_turn;
      CHECK(lock.listener.received() == Words{"look 0"});
      CHECK(released == "released");
      CHECK((Words{refused, granted} == Words{"busy", "granted"} || !in_time));
      return in_time;
    };
    wait_until(are_asked_in_time, "the lock is asked for while it is reserved");
  }
}

TEST_CASE("other kind: who asks a holder that is gone for its release is told of the holder of the other kind")
{
  for (const auto& pair : pairs) {
    const ScriptedLock lock(pair.first);
    REQUIRE(word(lock.acquire_as(pair.second, "b")) == "granted");
    for (const char* step : {"look", "revoke", "take"}) {
      const Reply answer = lock.force(step, "a");
      CHECK(word(answer) == "changed");
      CHECK(answer.elements.at(1).text == "b");
    }
    CHECK(word(lock.renew("a")) == "lost");
  }
}

TEST_CASE("other kind: every third hand-over is left to it")
{
  for (const auto& pair : pairs) {
    const auto& held = pair.first;
    const auto& waiting = pair.second;
    CAPTURE(kind_of(held).with_article);
    CAPTURE(kind_of(waiting).with_article);
    TwoKinds lock(held, waiting);
    CHECK(lock.turns_until_left() == 3);
    CHECK(word(lock.ask_as_other()) == "granted");
  }
}

TEST_CASE("other kind: the reservation ends with the grant")
{
  TwoKinds lock(Plain{}, Writer{});
  lock.release("a");
  CHECK(word(lock.ask_as_other()) == "granted");
  lock.release_as(Writer{}, "other");
  CHECK(word(lock.acquire("newcomer")) == "granted");
}

TEST_CASE("other kind: a stopped first waiter costs those behind it one turn")
{
  TwoKinds lock(Plain{}, Writer{});
  ChannelListener second = subscribe_as(lock, "second");
  lock.acquire_as(Writer{}, "second", "wait");
  lock.release("a");
  CHECK(lock.listener.received() == Words{"look 0"});
  lock.server.command({"DEL", "rlock:reserved:{k}"});  // its time is over
  CHECK(word(lock.acquire("b")) == "granted");
  lock.release("b");
  CHECK(lock.listener.received() == Words{"look 70"});
  CHECK(second.received() == Words{"look 90", "look 0"});
}

SCRIPT_CASE("other kind: any number of dead waiters in front hides no living one")
{
  lock.acquire("a");
  for (int i = 1; i <= 20; ++i) {
    lock.acquire_as(Writer{}, "dead" + std::to_string(i), "wait", 30'000, std::to_string(i));
  }
  ChannelListener living = subscribe_as(lock, "living");
  lock.acquire_as(Writer{}, "living", "wait");
  lock.release("a");
  CHECK(living.received() == Words{"look 0"});
  CHECK(as_int(lock.server.command({"ZCARD", "rlock:queue-rw:{k}"})) == 1);
}

TEST_CASE("other kind: a release whose own waiters are all dead tells it")
{
  for (int turn = 0; turn < 3; ++turn) {
    TwoKinds lock(Plain{}, Writer{});
    lock.server.command({"HSET", "rlock:waiters:{k}", "#turn", std::to_string(turn)});
    lock.wait("dead", "1");
    lock.release("a");
    CHECK(lock.listener.received() == Words{"look 0"});
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

QUEUED_RW_CASE("other kind: readers that still read keep a waiter of the plain lock out, and are not disturbed")
{
  ChannelListener plain = subscribe_as(lock, "p");
  lock.read("r1"), lock.read("r2");
  lock.acquire_as(Plain{}, "p", "wait");
  lock.end_read("r1");
  CHECK(plain.received() == Words{});
  lock.end_read("r2");
  CHECK(plain.received() == Words{"look 0"});
}
