// SPDX-License-Identifier: Apache-2.0
// Data of another program at the key of a lock: no script joins, extends, overwrites or deletes it. Beside each case, the lock
// that has this shape and must be joined.
#include "lua/kinds.h"
#include "lua/read_write_lock.h"
#include "support/foreign_kinds.h"

using namespace rlock::test;

namespace {

constexpr const char* redissons = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";

// What is at the key, and whether it has a ttl.
std::string content(const ScriptedLock& lock)
{
  return as_text(lock.server.command({"DUMP", "k"})) + (lock.pttl("k") == -1 ? "" : " with a ttl");
}

// Every verb of that kind, by a client that does not hold the lock.
void leaves_alone(const ScriptedLock& lock, const Kind& kind)
{
  const std::string before = content(lock);
  for (const char* options : {"try", "wait", "again"}) {
    CAPTURE(options);
    CHECK(word(lock.acquire_as(kind.kind, "b", options)) == (options == std::string("again") ? "lost" : "other"));
  }
  const KindScripts& scripts = scripts_of(kind.kind);
  CHECK(word(lock.eval_as(kind.kind, scripts.renew, "b", {"30000"})) == "lost");
  CHECK(word(lock.release_as(kind.kind, "b")) == "lost");
  CHECK(word(lock.eval_as(kind.kind, scripts.inspect, "", {})) == "other");
  for (const char* step : {"ask", "look", "revoke", "take"}) {
    CHECK(word(lock.eval_as(kind.kind, scripts.force, "user", {"eve@h", step, "1000"})) == "other");
  }
  CHECK(content(lock) == before);
}

}  // namespace

TEST_CASE("foreign data: a hash with a field `mode` alone is no read-write lock, and is refused to every kind")
{
  const std::vector<Words> hashes{{"mode", "read"},
                                  {"mode", "read", "user", "ann"},
                                  {"mode", "read", "visits", "5"},
                                  {"mode", "read", redissons, "ann"},
                                  {"mode", "write"},
                                  {"mode", "write", "path", "/srv/stock"},
                                  {"mode", "write", "visits", "5"},
                                  {"mode", "write", "can:write", "yes"}};
  for (const Words& fields : hashes) {
    CAPTURE(fields.back());
    for (const int ttl : {0, 60'000}) {
      CAPTURE(ttl);
      for (const Kind& kind : kinds) {
        CAPTURE(shown(kind));
        const ScriptedLock lock(kind.kind);
        lock.server.command(joined({"HSET", "k"}, fields));
        if (ttl > 0) {
          lock.server.command({"PEXPIRE", "k", std::to_string(ttl)});
        }
        leaves_alone(lock, kind);
      }
    }
  }
}

RW_LOCK_CASE("foreign data: a hash that took the place of a read lock is its loss, and is not released")
{
  lock.read("a");
  lock.server.command({"DEL", "k"});
  lock.server.command({"HSET", "k", "mode", "read", "user", "ann"});
  const std::string before = content(lock);
  CHECK(word(lock.renew("a")) == "lost");
  CHECK(word(lock.end_read("a")) == "lost");
  CHECK(content(lock) == before);
}

TEST_CASE("foreign data: a read-write lock is joined by its readers' timeouts, also where its ttl is lost")
{
  for (const bool persists : {false, true}) {
    CAPTURE(persists);
    const ReadWriteLock lock;
    const ForeignReadWrite java(lock.server, "foreign-1");
    REQUIRE_FALSE(java.read());
    if (persists) {
      lock.server.command({"PERSIST", "k"});
    }
    CHECK(word(lock.write("w")) == "busy");
    CHECK(word(lock.read("a")) == "granted");
    CHECK(lock.hash("k") == HashFields{{"mode", "read"}, {"foreign-1", "1"}, {"a", "1"}});
  }
}

RW_LOCK_CASE("foreign data: a read-write lock of which only dead readers are left is one until it expires")
{
  const ForeignReadWrite java(lock.server, redissons);
  REQUIRE_FALSE(java.read());
  lock.server.command({"DEL", timeout_of(redissons)});
  CHECK(word(lock.write("w")) == "busy");
  CHECK(word(lock.acquire_as(Plain{}, "p")) == "busy");
  CHECK(word(lock.read("a")) == "granted");
  CHECK(word(lock.end_read("a")) == "released");
  CHECK(lock.exists("k") == 0);
}

RW_LOCK_CASE("foreign data: a living reader is found among many dead ones")
{
  lock.read("living");
  Words fields{"HSET", "k"};
  for (int i = 0; i < 400; ++i) {
    fields.insert(fields.end(), {"dead" + std::to_string(i), "1"});
  }
  lock.server.command(fields);
  CHECK(word(lock.acquire_as(Plain{}, "p")) == "busy");
  CHECK(word(lock.read("a")) == "granted");
}

TEST_CASE("foreign data: a counter is no number of permits, whatever lock had the name before")
{
  for (const Kind& before : kinds) {
    CAPTURE(shown(before));
    for (const char* counter : {"1000", "1", "0", "-5"}) {
      CAPTURE(counter);
      const ScriptedLock lock(Permits{3});
      CHECK(word(lock.acquire_as(before.kind, "a")) == "granted");
      CHECK(word(lock.release_as(before.kind, "a")) == "released");
      lock.server.command({"SET", "k", counter});
      const Reply refused = lock.acquire_as(Permits{3}, "b", "wait");
      CHECK(word(refused) == "differs");
      CHECK(refused.elements.at(1).integer == std::stoi(counter));
      CHECK(as_text(lock.server.command({"GET", "k"})) == counter);
    }
  }
}

TEST_CASE("foreign data: a number of permits that rlock wrote may change when none is held")
{
  const ScriptedLock lock(Permits{3});
  CHECK(word(lock.acquire_as(Permits{3}, "a")) == "granted");
  CHECK(word(lock.release_as(Permits{3}, "a")) == "released");
  CHECK(word(lock.acquire_as(Permits{5}, "b", "try", 40)) == "granted");
  wait_for_expiry(lock);
  CHECK(word(lock.acquire_as(Permits{2}, "c")) == "granted");
  CHECK(as_text(lock.server.command({"GET", "k"})) == "1");
  CHECK(lock.lasting() == Words{"k", "{k}:timeout"});
}

TEST_CASE("foreign data: what takes the place of the number is the loss of every permit, and stays")
{
  const std::vector<Words> values{{"SET", "k", "hello"},
                                  {"SET", "k", "1.5"},
                                  {"HSET", "k", "user", "ann"},
                                  {"HSET", "k", "mode", "read"},
                                  {"RPUSH", "k", "x"}};
  for (const Words& value : values) {
    CAPTURE(value.back());
    const ScriptedLock lock(Permits{3});
    REQUIRE(word(lock.acquire("a")) == "granted");
    REQUIRE(word(lock.acquire("a", "inner")) == "granted");
    REQUIRE(word(lock.acquire("c")) == "granted");
    lock.server.command({"DEL", "k"});
    lock.server.command(value);
    const std::string before = content(lock);
    const Reply renewed = lock.renew("a");
    CHECK(word(renewed) == "lost");
    CHECK(renewed.elements.at(1).text != "none");
    CHECK(word(lock.renew("a", 0)) == "lost");
    CHECK(word(lock.release("a", "inner")) == "lost");
    CHECK(word(lock.release("a", "a", 5000)) == "lost");
    CHECK(word(lock.release("c")) == "lost");
    CHECK(word(lock.release("c")) == "lost");
    leaves_alone(lock, {"permits", Permits{3}});
    CHECK(content(lock) == before);
  }
}
