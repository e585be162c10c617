// SPDX-License-Identifier: Apache-2.0
// Every script of the plain lock, every row of its return table, on a real server: first the dangerous rows. What all
// kinds have in common is in kinds_test.cpp and kinds_keys_test.cpp.
#include "lua/scripted_lock.h"
#include "lua/scripts.h"

#include <cmath>

using namespace rlock::test;

namespace {

using Lock = ScriptedLock;

constexpr const char* holder = "rlock:holder:{k}";
constexpr const char* force = "rlock:force:{k}";

}  // namespace

#define PLAIN_LOCK_CASE(title) CASE_WITH(Lock, lock, title)

PLAIN_LOCK_CASE("plain_acquire: another owner's lock is not touched")
{
  REQUIRE(word(lock.acquire("a")) == "granted");
  const Reply refused = lock.acquire("b");
  CHECK(word(refused) == "busy");
  CHECK(refused.elements.at(1).integer > 29'000);
  CHECK(refused.elements.at(2).text == "a");
  CHECK(refused.elements.at(3).integer == 1);
  CHECK(refused.elements.at(4).text == "host=h\npid=1");
  CHECK(lock.count("b") == 0);
  CHECK(lock.count("a") == 1);
}

TEST_CASE("plain_acquire: what is no such lock is named and left alone")
{
  struct Row {
    const char* why;
    Words set_up;
    const char* what;
  };
  const Row rows[] = {
      {"a string", {"SET", "k", "x"}, "string"},
      {"a list", {"RPUSH", "k", "x"}, "list"},
      {"somebody's data", {"HSET", "k", "name", "bob"}, "hash that is no lock"},
      {"Redisson's faster multi lock", {"HSET", "k", "h", "o", "h:o:lock_count", "1"}, "hash that is no lock"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    const Lock lock;
    lock.server.command(row.set_up);
    const Reply refused = lock.acquire("a");
    CHECK(word(refused) == "other");
    CHECK(refused.elements.at(1).text == row.what);
    CHECK(as_int(lock.server.command({"DBSIZE"})) == 1);
    CHECK(lock.pttl("k") == -1);
  }
}

PLAIN_LOCK_CASE("plain_acquire: every key it writes has a ttl")
{
  lock.acquire("a");
  CHECK(lock.lasting() == Words{});
  CHECK(lock.pttl("k") <= 30'000);
  CHECK(std::abs(lock.pttl("k") - lock.pttl(holder)) < 50);
}

TEST_CASE("plain_acquire: a missing right leaves no lock, whichever it is")
{
  for (const std::string missing :
       {"-set", "-get", "-hset", "-pexpire", "-del", "-time", "-pttl", "-hmget", "-hget", "-zpopmin", "-hgetall",
        "-hlen", "-type", "-hdel", "-rpush", "-publish", "-lindex", "resetchannels"}) {
    CAPTURE(missing);
    const Lock lock;
    REQUIRE_FALSE(lock.server.command({"ACL", "SETUSER", "default", missing}).is_error());
    const Reply refused = lock.acquire("a");
    CHECK((refused.is_error() || word(refused) == "denied"));
    lock.server.command({"ACL", "SETUSER", "default", "+@all"});
    CHECK_FALSE(is_held(lock.server));
    CHECK(lock.lasting() == Words{});
  }
}

PLAIN_LOCK_CASE("plain_renew: never another owner's lock, never a lock that is gone, never another kind")
{
  CHECK(word(lock.renew("a")) == "lost");
  CHECK_FALSE(is_held(lock.server));

  lock.acquire("b", "b", 5000);
  const Reply taken = lock.renew("a");
  CHECK(word(taken) == "lost");
  CHECK(taken.elements.at(2).text == "b");
  CHECK(lock.pttl("k") <= 5000);

  lock.server.command({"SET", "k", "x"});
  CHECK(word(lock.renew("a")) == "lost");
  CHECK(lock.pttl("k") == -1);
}

PLAIN_LOCK_CASE("plain_release: another owner's lock, a lock that is gone, another kind: untouched")
{
  CHECK(word(lock.release("a")) == "lost");
  lock.acquire("b");
  const Reply refused = lock.release("a");
  CHECK(word(refused) == "lost");
  CHECK(refused.elements.at(2).text == "b");
  CHECK(lock.count("b") == 1);
  lock.server.command({"SET", "k", "x"});
  CHECK(word(lock.release("a")) == "lost");
  CHECK(as_text(lock.server.command({"GET", "k"})) == "x");
}

PLAIN_LOCK_CASE("plain_inspect: free, held, something else")
{
  const Reply free = lock.inspect();
  CHECK(word(free) == "known");
  CHECK(lock.holders().empty());
  const Reply granted = lock.acquire("a");
  const Reply held = lock.inspect();
  CHECK(word(held) == "known");
  CHECK(held.elements.at(1).text == granted.elements.at(1).text);
  CHECK(lock.holders().at(0).owner == "a");
  lock.server.command({"SET", "k", "x"});
  CHECK(word(lock.inspect()) == "other");
}

TEST_CASE("plain_inspect: data of another program is no proven lock, one of Redisson is")
{
  constexpr std::size_t proven = 8;
  const Lock lock;
  REQUIRE(word(lock.acquire("a")) == "granted");
  CHECK(lock.inspect().elements.at(proven).integer == 1);
  lock.server.command({"DEL", "k", "rlock:holder:{k}"});
  lock.server.command({"HSET", "k", "prod", "5"});
  CHECK(lock.inspect().elements.at(proven).integer == 0);
  lock.server.command({"DEL", "k"});
  lock.server.command({"HSET", "k", "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1"});
  CHECK(lock.inspect().elements.at(proven).integer == 1);
}

TEST_CASE("plain_inspect: the answer is the same where somebody waits, apart from the waiters")
{
  constexpr std::size_t holders = 5;
  constexpr std::size_t waiters = 6;
  const Lock lock;
  const auto told = [&] {
    Reply seen = lock.inspect();
    REQUIRE(seen.elements.size() == 12);
    for (const std::size_t passing : {std::size_t{2}, std::size_t{10}, std::size_t{11}}) {  // a ttl, a ttl, the time
      CHECK(seen.elements.at(passing).kind != Reply::Kind::nil);
      seen.elements.at(passing) = Reply();
    }
    seen.elements.at(holders).elements.at(4) = Reply();  // the age
    seen.elements.at(waiters) = Reply();
    return show(seen);
  };
  REQUIRE(word(lock.acquire("a")) == "granted");
  const auto same_with_waiter = [&] {
    const std::string alone = told();
    lock.server.command({"ZADD", "rlock:queue:{k}", "1", "w"});
    CHECK(told() == alone);
    lock.server.command({"DEL", "rlock:queue:{k}"});
  };
  same_with_waiter();
  lock.server.command({"SET", "rlock:done:{k}", "1790000000000000", "PX", "60000"});
  same_with_waiter();
  lock.server.command({"HSET", "rlock:holder:{k}", "agreed:a", "1790000000000001"});
  same_with_waiter();
  lock.server.command({"HSET", "rlock:force:{k}", "revoked:a", "1"});
  same_with_waiter();
  lock.server.command({"HSET", "k", "a", "3"});
  same_with_waiter();
  lock.server.command({"HDEL", "rlock:holder:{k}", "fence:a", "agreed:a"});
  same_with_waiter();
}

PLAIN_LOCK_CASE("plain_force: asks and breaks only the owner that was meant")
{
  CHECK(word(lock.ask("a")) == "free");
  CHECK(word(lock.take_away("a")) == "free");
  lock.acquire("b");
  CHECK(word(lock.ask("a")) == "changed");
  CHECK(word(lock.take_away("a")) == "changed");
  CHECK(lock.count("b") == 1);
  CHECK(as_int(lock.server.command({"EXISTS", force})) == 0);

  CHECK(word(lock.ask("b")) == "held");
  CHECK(lock.renew("b").elements.at(1).text == "eve@h");
  CHECK(word(lock.take_away("b")) == "broken");
  CHECK(lock.count("b") == 0);
  CHECK(lock.renew("b").elements.at(4).text == "eve@h");
  CHECK(lock.lasting() == Words{});
}

PLAIN_LOCK_CASE("plain_acquire again: only under an owner that holds the lock at this moment")
{
  const auto again = [&](const std::string& owner, const std::string& hold) {
    return lock.acquire(owner, hold, 30'000, "again");
  };
  CHECK(word(again("a", "inner")) == "lost");  // free
  CHECK(as_int(lock.server.command({"DBSIZE"})) == 0);

  lock.acquire("b", "b", 5000);
  const Reply refused = again("a", "inner");  // another owner's
  CHECK(word(refused) == "lost");
  CHECK(refused.elements.at(2).text == "b");
  CHECK(lock.count("a") == 0);
  CHECK(lock.pttl("k") <= 5000);
  CHECK(as_int(lock.server.command({"EXISTS", "rlock:queue:{k}"})) == 0);
  lock.release("b");

  const Reply first = lock.acquire("a");
  const Reply nested = again("a", "inner");
  CHECK(word(nested) == "granted");
  CHECK(nested.elements.at(1).text == first.elements.at(1).text);
  CHECK(nested.elements.at(2).integer == 2);
  CHECK(again("a", "inner").elements.at(2).integer == 2);

  lock.server.command({"SET", "k", "x"});
  CHECK(word(again("a", "other")) == "lost");
}

PLAIN_LOCK_CASE("a nested hold: never shortens the lease, and tells of the outermost")
{
  lock.acquire("a", "a", 20'000);
  lock.eval(scripts::plain_acquire, "a", {"inner", "1000", "host=inner", "again", "0", "0"});
  CHECK(lock.pttl("k") > 19'000);
  CHECK(lock.pttl(holder) > 19'000);
  CHECK(as_text(lock.server.command({"HGET", holder, "a"})) == "host=h\npid=1");
  lock.acquire("a", "innermost", 60'000, "again");
  CHECK(lock.pttl("k") > 59'000);
  CHECK(lock.pttl(holder) > 59'000);
}

PLAIN_LOCK_CASE("a nested hold: what was refused or never was cannot let the outer one go")
{
  lock.acquire("a");
  SUBCASE("memory is full")
  {
    lock.server.command({"CONFIG", "SET", "maxmemory", "1"});
    CHECK(lock.acquire("a", "inner", 30'000, "again").is_error());
  }
  SUBCASE("a right is missing")
  {
    lock.server.command({"ACL", "SETUSER", "default", "-hincrby"});
    CHECK(word(lock.acquire("a", "inner", 30'000, "again")) == "denied");
    lock.server.command({"ACL", "SETUSER", "default", "+@all", "-hset"});
    CHECK(word(lock.acquire("a", "inner", 30'000, "again")) == "denied");
    lock.server.command({"ACL", "SETUSER", "default", "+@all"});
  }
  SUBCASE("the record was lost") { lock.server.command({"DEL", holder}); }
  CHECK(lock.count("a") == 1);
  CHECK(word(lock.release("a", "inner")) == "still_held");
  CHECK(lock.count("a") == 1);
  CHECK(word(lock.release("a")) == "released");
}

PLAIN_LOCK_CASE("a nested hold: on a lock whose record was lost, every key still has a ttl")
{
  lock.acquire("a");
  lock.server.command({"DEL", holder});
  CHECK(word(lock.acquire("a", "inner", 1000, "again")) == "granted");
  CHECK(lock.lasting() == Words{});
  CHECK(word(lock.release("a", "inner")) == "still_held");
  CHECK(lock.count("a") == 1);
}
