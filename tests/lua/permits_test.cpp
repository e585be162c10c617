// SPDX-License-Identifier: Apache-2.0
// Permits on the wire, byte for byte as Redisson's RPermitExpirableSemaphore, and beside it. What all kinds have in
// common is in kinds_test.cpp, the queue in queue_test.cpp. Over 300 lines: one case for each row of the wire format.
#include "lua/scripted_lock.h"
#include "support/foreign_kinds.h"

using namespace rlock::test;

namespace {

constexpr const char* expiries = "{k}:timeout";
constexpr const char* channel = "redisson_sc:{k}";

struct PermitsLock : ScriptedLock {
  explicit PermitsLock(unsigned limit, RedisOptions options = {}) : ScriptedLock(Permits{limit}, std::move(options)) {}
  std::string number() const { return as_text(server.command({"GET", "k"})); }
  std::int64_t members() const { return as_int(server.command({"ZCARD", expiries})); }
  Reply acquire_of(unsigned limit, const std::string& owner, int ttl = 30'000) const
  {
    return acquire_as(Permits{limit}, owner, "try", ttl);
  }
};

std::string uuid(int last) { return "01234567-89ab-cdef-0123-4567" + std::to_string(89'000'000 + last); }
std::string hex(int last) { return "0123456789abcdef01234567" + std::to_string(89'000'000 + last); }

std::int64_t server_ms(const RedisServer& server)
{
  const auto time = as_texts(server.command({"TIME"}));
  return std::stoll(time.at(0)) * 1000 + std::stoll(time.at(1)) / 1000;
}

}  // namespace

TEST_CASE("permits: on the wire")
{
  const PermitsLock lock(3);
  const std::int64_t before = server_ms(lock.server);
  REQUIRE(word(lock.acquire(uuid(1) + ":77")) == "granted");
  REQUIRE(word(lock.acquire(uuid(2) + ":78")) == "granted");
  CHECK(lock.number() == "1");
  CHECK(as_text(lock.server.command({"TYPE", expiries})) == "zset");
  const auto members = as_texts(lock.server.command({"ZRANGE", expiries, "0", "-1"}));
  CHECK(Words(members) == Words{permit_bytes(hex(1)), permit_bytes(hex(2))});
  CHECK(members.at(0).size() == 16);
  const std::int64_t score = std::stoll(as_text(lock.server.command({"ZSCORE", expiries, permit_bytes(hex(1))})));
  CHECK(score >= before + 30'000);
  CHECK(score <= server_ms(lock.server) + 30'000);
  CHECK(lock.lasting() == Words{"k", expiries});  // as in Redisson; no other key lasts

  CHECK(word(lock.release(uuid(1) + ":77")) == "released");
  CHECK(word(lock.release(uuid(2) + ":78")) == "released");
  CHECK(lock.number() == "3");
  CHECK(lock.lasting() == Words{"k"});
}

TEST_CASE("permits: never more than there are, and the refused one learns when to look")
{
  const PermitsLock lock(2);
  CHECK(word(lock.acquire("a", "a", 20'000)) == "granted");
  CHECK(word(lock.acquire("b", "b", 10'000)) == "granted");
  const Reply refused = lock.acquire("c");
  CHECK(word(refused) == "busy");
  CHECK(refused.elements.at(1).integer <= 10'000);
  CHECK(refused.elements.at(1).integer > 9000);
  CHECK(refused.elements.at(2).text == "b");
  CHECK(lock.number() == "0");
  CHECK(lock.members() == 2);
  lock.release("a");
  CHECK(word(lock.acquire("c")) == "granted");
  CHECK(word(lock.acquire("d")) == "busy");
}

TEST_CASE("permits: what is said when one becomes free: how many there are")
{
  const PermitsLock lock(2);
  ChannelListener listener(lock.server, channel);
  lock.acquire("a"), lock.acquire("b");
  lock.release("a"), lock.release("b");
  CHECK(listener.received() == Words{"1", "2"});
  lock.release("b");
  CHECK(listener.received() == Words{});
  lock.acquire("a");
  lock.take_away("a");
  CHECK(listener.received() == Words{"2"});
}

TEST_CASE("permits: a killed holder's comes back when its lease is over, once")
{
  const PermitsLock lock(2);
  lock.acquire("dead"), lock.acquire("b");
  CHECK(word(lock.acquire("c")) == "busy");
  lock.server.command({"ZADD", expiries, "1", "dead"});  // the killed holder's lease is over
  CHECK(word(lock.acquire("c")) == "granted");
  CHECK(lock.members() == 2);
  CHECK(lock.number() == "0");
  CHECK(word(lock.renew("dead")) == "lost");
  CHECK(word(lock.release("dead")) == "lost");
  CHECK(lock.number() == "0");
  lock.release("b"), lock.release("c");
  CHECK(lock.number() == "2");
}

TEST_CASE("permits: a request for another number is told both numbers while one is held")
{
  const PermitsLock lock(2);
  lock.acquire("a");
  for (const unsigned other : {1U, 3U}) {
    const Reply refused = lock.acquire_of(other, "b");
    CHECK(word(refused) == "differs");
    CHECK(refused.elements.at(1).integer == 2);
    CHECK(refused.elements.at(2).integer == other);
  }
  CHECK(lock.number() == "1");
  CHECK(lock.members() == 1);
  lock.release("a");
  CHECK(word(lock.acquire_of(5, "b")) == "granted");
  CHECK(lock.number() == "4");
  CHECK(word(lock.acquire_of(2, "a")) == "differs");
  lock.release_as(Permits{5}, "b");
  CHECK(word(lock.acquire_of(1, "a")) == "granted");
  CHECK(lock.number() == "0");
}

TEST_CASE("permits: their number may change when all holders are dead")
{
  const PermitsLock lock(2);
  lock.acquire("a", "a", 40), lock.acquire("b", "b", 40);
  wait_until([&] { return word(lock.acquire_of(5, "c")) == "granted"; }, "no permit is held");
  CHECK(lock.number() == "4");
  CHECK(lock.members() == 1);
}

TEST_CASE("permits: a number that another program wrote under a held permit is a loss, and stays")
{
  const PermitsLock lock(3);
  lock.acquire("a"), lock.acquire("b");
  lock.server.command({"SET", "k", "1000"});
  CHECK(word(lock.renew("a")) == "lost");
  const Reply lost = lock.release("a");
  CHECK(word(lost) == "lost");
  CHECK(lost.elements.at(1).text == "number that another program wrote");
  CHECK(word(lock.release("b")) == "lost");
  CHECK(lock.number() == "1000");
}

TEST_CASE("permits: a request that does not know how many there are takes a number of another program as a loss, too")
{
  const PermitsLock lock(3);
  lock.acquire("a"), lock.acquire("b");
  lock.server.command({"SET", "k", "1000"});
  CHECK(word(lock.eval_as(Permits{0}, scripts_of(Permits{0}).renew, "a", {"30000"})) == "lost");
  CHECK(word(lock.release_as(Permits{0}, "a")) == "lost");
  CHECK(word(lock.eval_as(Permits{0}, scripts_of(Permits{0}).force, "b", {"eve@h", "take", "1000"})) != "broken");
  CHECK(lock.number() == "1000");
  lock.server.command({"SET", "k", "1"});
  CHECK(word(lock.release_as(Permits{0}, "a")) == "released");
  CHECK(lock.number() == "2");
}

TEST_CASE("permits: a number that a JVM wrote as it took or gave back a permit is no loss")
{
  const PermitsLock lock(3);
  lock.acquire("a");
  lock.server.command({"DECR", "k"});
  lock.server.command({"ZADD", expiries, std::to_string(server_ms(lock.server) + 30'000), permit_bytes(hex(1))});
  CHECK(word(lock.renew("a")) == "kept");
  CHECK(word(lock.eval_as(Permits{0}, scripts_of(Permits{0}).renew, "a", {"30000"})) == "kept");
  CHECK(word(lock.release_as(Permits{0}, "a")) == "released");
  CHECK(lock.number() == "2");
}

TEST_CASE("permits: a counter of another program is no semaphore")
{
  const PermitsLock lock(5);
  lock.server.command({"SET", "k", "1234"});
  const Reply refused = lock.acquire("a");
  CHECK(word(refused) == "differs");
  CHECK(refused.elements.at(1).integer == 1234);
  CHECK(lock.number() == "1234");
  for (const Words& other :
       {Words{"SET", "k", "5", "PX", "10000"}, Words{"SET", "k", "abc"}, Words{"SET", "k", "1.5"}}) {
    CAPTURE(other.at(2));
    lock.server.command(other);
    CHECK(word(lock.acquire("a")) == "other");
    CHECK(lock.number() == other.at(2));
  }
}

TEST_CASE("permits: deleting the number admits no more holders than there are permits")
{
  const PermitsLock lock(3);
  lock.acquire("a"), lock.acquire("b");
  lock.server.command({"DEL", "k"});
  CHECK(word(lock.renew("a")) == "kept");
  CHECK(word(lock.acquire("c")) == "granted");
  CHECK(lock.number() == "0");
  CHECK(word(lock.acquire("d")) == "busy");
  lock.server.command({"DEL", "k"});
  CHECK(word(lock.acquire("d")) == "busy");
  lock.release("a");
  CHECK(lock.number() == "1");
  lock.release("b"), lock.release("c");
  CHECK(lock.number() == "3");
}

TEST_CASE("permits: deleting the expiries takes the permits away, and they can be acquired again")
{
  const PermitsLock lock(2);
  lock.acquire("a"), lock.acquire("b");
  lock.server.command({"DEL", expiries});
  CHECK(word(lock.renew("a")) == "lost");
  CHECK(word(lock.release("a")) == "lost");
  CHECK(word(lock.acquire("c")) == "granted");
  CHECK(lock.number() == "1");
}

TEST_CASE("permits: a full memory refuses a new one cleanly, also when some have expired")
{
  const PermitsLock lock(2);
  lock.acquire("a"), lock.acquire("b");
  lock.server.command({"CONFIG", "SET", "maxmemory", "1"});
  lock.release("a");
  CHECK(lock.number() == "1");
  CHECK(lock.acquire("c").is_error());
  CHECK(lock.number() == "1");
  CHECK(lock.members() == 1);
}

TEST_CASE("permits: inspect counts the dead as free, changes nothing and shows 64 of many")
{
  const PermitsLock lock(100);
  for (int i = 0; i < 70; ++i) {
    REQUIRE(word(lock.acquire(uuid(i) + ":1")) == "granted");
  }
  Reply seen = lock.inspect();
  CHECK(seen.elements.at(3).integer == 100);
  CHECK(seen.elements.at(4).integer == 70);
  CHECK(lock.holders().size() == 64);
  lock.server.command({"ZADD", expiries, "1", permit_bytes(hex(0))});  // killed
  seen = lock.inspect();
  CHECK(seen.elements.at(3).integer == 100);
  CHECK(seen.elements.at(4).integer == 69);
  CHECK(lock.holders().at(0).owner == uuid(1) + ":1");
  CHECK(lock.members() == 70);
  CHECK(lock.number() == "30");
}

TEST_CASE("permits: inspect tells the fencing number of the only holder, and of several the last that was given out")
{
  const PermitsLock lock(3);
  std::vector<std::string> fences;
  for (const char* owner : {"a", "b", "c"}) {
    fences.push_back(lock.acquire(owner).elements.at(1).text);
  }
  CHECK(lock.inspect().elements.at(1).text == fences.at(2));
  REQUIRE(word(lock.release("c")) == "released");
  CHECK(lock.inspect().elements.at(1).text == fences.at(2));
  REQUIRE(word(lock.release("b")) == "released");
  CHECK(lock.inspect().elements.at(1).text == fences.at(0));
}

TEST_CASE("permits: with three hundred holders each is still let go")
{
  const PermitsLock lock(300);
  for (int i = 0; i < 300; ++i) {
    REQUIRE(word(lock.acquire(uuid(i) + ":1")) == "granted");
  }
  CHECK(word(lock.acquire(uuid(300) + ":1")) == "busy");
  for (int round = 0; round < 300; ++round) {  // each round may remove the records of the dead
    const std::string owner = uuid(round) + ":1";
    REQUIRE(word(lock.release(owner)) == "released");
    REQUIRE(word(lock.acquire(owner)) == "granted");
  }
  for (int i = 0; i < 300; ++i) {
    REQUIRE(word(lock.release(uuid(i) + ":1")) == "released");
  }
  CHECK(lock.number() == "300");
  CHECK(lock.exists("rlock:holder:{k}") == 0);
}

// Beside Redisson.

TEST_CASE("permits beside Redisson: both count each other's, and Java can release rlock's by its name")
{
  const PermitsLock lock(2);
  const ForeignPermits java(lock.server);
  REQUIRE(java.set_permits(2));
  REQUIRE(java.acquire(permit_bytes(hex(7)), 30'000) == "OK");
  CHECK(word(lock.acquire(uuid(1) + ":5", uuid(1) + ":5", 20'000)) == "granted");
  CHECK(word(lock.acquire("c")) == "busy");
  CHECK(java.acquire(permit_bytes(hex(8)), 30'000) ==
        ":" + as_text(lock.server.command({"ZSCORE", expiries, permit_bytes(hex(1))})));
  CHECK(java.release(permit_bytes(hex(1))) == 1);
  CHECK(word(lock.renew(uuid(1) + ":5")) == "lost");
  CHECK(word(lock.release(uuid(1) + ":5")) == "lost");
  CHECK(lock.number() == "1");
}

TEST_CASE("permits beside Redisson: a foreign holder is shown by its permit, first to a waiter that must listen for it")
{
  const PermitsLock lock(2);
  const ForeignPermits java(lock.server);
  lock.acquire("a", "a", 5000);
  java.acquire(permit_bytes(hex(7)), 30'000);
  const Reply refused = lock.acquire("c");
  CHECK(refused.elements.at(2).text == hex(7));
  CHECK(refused.elements.at(4).kind == Reply::Kind::nil);
  CHECK(refused.elements.at(1).integer <= 5000);
  CHECK(word(lock.take_away(hex(7))) == "broken");
  CHECK(java.release(permit_bytes(hex(7))) == 0);
}

TEST_CASE("permits beside Redisson: a permit without expiry is held, and costs no polling")
{
  const PermitsLock lock(1);
  const ForeignPermits java(lock.server);
  java.set_permits(1);
  java.acquire(permit_bytes(hex(7)), 1);
  lock.server.command({"ZADD", expiries, "922337203685477", permit_bytes(hex(7))});
  const Reply refused = lock.acquire("a");
  CHECK(word(refused) == "busy");
  CHECK(refused.elements.at(1).integer > 1'000'000'000);
  CHECK(java.release(permit_bytes(hex(7))) == 1);
  CHECK(word(lock.acquire("a")) == "granted");
}

TEST_CASE("permits beside Redisson: each counts the other's expired permits as free")
{
  const PermitsLock lock(1);
  const ForeignPermits java(lock.server);
  java.set_permits(1);
  java.acquire(permit_bytes(hex(7)), 40);
  wait_until([&] { return word(lock.acquire("a", "a", 40)) == "granted"; }, "Java's lease is over");
  wait_until([&] { return java.acquire(permit_bytes(hex(8)), 30'000) == "OK"; }, "the lease is over");
  CHECK(lock.number() == "0");
  CHECK(lock.members() == 1);
}

TEST_CASE("permits beside Redisson: a number that it has set is not changed by a request for another")
{
  const PermitsLock lock(5);
  const ForeignPermits java(lock.server);
  java.set_permits(10);
  CHECK(word(lock.acquire("a")) == "differs");
  CHECK(lock.number() == "10");
  CHECK(word(lock.acquire_of(10, "a")) == "granted");
  CHECK(lock.number() == "9");
}

TEST_CASE("permits: a request for release reaches the named owner, whatever was requested since")
{
  const PermitsLock lock(2);
  lock.acquire("a"), lock.acquire("b");
  CHECK(word(lock.ask("a")) == "held");
  CHECK(word(lock.take_away("b")) == "broken");
  CHECK(lock.renew("a").elements.at(1).text == "eve@h");
  CHECK(lock.renew("b").elements.at(4).text == "eve@h");
  lock.release("a");
  CHECK(word(lock.acquire("c")) == "granted");
  CHECK(lock.renew("c").elements.at(1).kind == Reply::Kind::nil);
}
