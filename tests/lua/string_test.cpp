// SPDX-License-Identifier: Apache-2.0
// The string lock on the wire, and beside the clients that take one with SET NX PX. What all kinds have in common is in
// kinds_test.cpp.
#include "lua/scripted_lock.h"

using namespace rlock::test;

namespace {

// As redis-py, redsync, Spring and most others do it.
bool take(const RedisServer& server, const std::string& token, const std::string& ttl = "30000")
{
  return server.command({"SET", "k", token, "NX", "PX", ttl}).kind != Reply::Kind::nil;
}

bool release_all(const RedisServer& server, const std::string& token)
{
  constexpr const char* script =
      "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
  return as_int(server.command({"EVAL", script, "1", "k", token})) == 1;
}

struct ScriptedStringLock : ScriptedLock {
  ScriptedStringLock() : ScriptedLock(StringLock{}) {}
};

}  // namespace

TEST_CASE("string: on the wire")
{
  const ScriptedStringLock lock;
  REQUIRE(word(lock.acquire("uuid:7")) == "granted");
  CHECK(as_text(lock.server.command({"GET", "k"})) == "uuid:7");
  CHECK(lock.pttl("k") > 29'000);
  CHECK(lock.pttl("k") <= 30'000);
  CHECK_FALSE(take(lock.server, "other"));
  CHECK_FALSE(release_all(lock.server, "other"));
  CHECK(word(lock.release("uuid:7")) == "released");
  CHECK(lock.exists("k") == 0);
}

TEST_CASE("string: a foreign holder is waited for, and never renewed, released or written over")
{
  const ScriptedStringLock lock;
  REQUIRE(take(lock.server, "token"));
  const Reply refused = lock.acquire("a");
  CHECK(word(refused) == "busy");
  CHECK(refused.elements.at(1).integer > 29'000);
  CHECK(refused.elements.at(2).text == "token");
  CHECK(refused.elements.at(4).kind == Reply::Kind::nil);
  CHECK(word(lock.renew("a")) == "lost");
  CHECK(word(lock.release("a")) == "lost");
  CHECK(as_text(lock.server.command({"GET", "k"})) == "token");
  CHECK(release_all(lock.server, "token"));
  CHECK(word(lock.acquire("a")) == "granted");
}

TEST_CASE("string: a value without a ttl is held, even a bare number")
{
  for (const char* token : {"token", "1", "4711"}) {
    CAPTURE(token);
    const ScriptedStringLock lock;
    lock.server.command({"SETNX", "k", token});
    const Reply refused = lock.acquire("a");
    CHECK(word(refused) == "busy");
    CHECK(refused.elements.at(1).integer == -1);
    CHECK(refused.elements.at(2).text == token);
    CHECK(lock.pttl("k") == -1);
    CHECK(lock.holders().size() == 1);
  }
}

TEST_CASE("string: taken by another client after it had expired, the loss names that client")
{
  const ScriptedStringLock lock;
  lock.acquire("a", "a", 40);
  wait_until([&] { return take(lock.server, "token"); }, "the lease is over");
  const Reply lost = lock.renew("a");
  CHECK(word(lost) == "lost");
  CHECK(lost.elements.at(1).text == "held");
  CHECK(lost.elements.at(2).text == "token");
  CHECK(word(lock.release("a")) == "lost");
  CHECK(as_text(lock.server.command({"GET", "k"})) == "token");
}

TEST_CASE("string: handed to a waiter within one script, so that no polling client comes between")
{
  const ScriptedStringLock lock;
  const ChannelListener waiter = subscribe_as(lock, "b");
  lock.acquire("a");
  lock.wait("b");
  lock.release("a");
  CHECK(as_text(lock.server.command({"GET", "k"})) == "b");
  CHECK(lock.pttl("k") <= 2000);
  CHECK(word(lock.wait("b")) == "granted");
  CHECK(lock.pttl("k") > 29'000);
}

TEST_CASE("string: what is no string is left alone")
{
  const ScriptedStringLock lock;
  for (const Words& other : {Words{"RPUSH", "k", "x"}, Words{"HSET", "k", "uuid:1", "1"},
                             Words{"HSET", "k", "name", "bob"}, Words{"SADD", "k", "x"}}) {
    CAPTURE(other.at(0));
    lock.server.command(other);
    CHECK(word(lock.acquire("a")) == "other");
    CHECK(as_int(lock.server.command({"DBSIZE"})) == 1);
    lock.server.command({"DEL", "k"});
  }
}
