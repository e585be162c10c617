// SPDX-License-Identifier: Apache-2.0
// The read-write lock on the wire, byte for byte as Redisson's RReadWriteLock; rw_redisson_test.cpp has both on one lock. What all
// kinds have in common is in kinds_test.cpp, the queue in queue_test.cpp. Over 300 lines: one case for each row of the wire format.
#include "lua/read_write_lock.h"

using namespace rlock::test;

RW_LOCK_CASE("rw: a reader on the wire")
{
  REQUIRE(word(lock.read("u-u-i-d:7")) == "granted");
  CHECK(lock.hash("k") == HashFields{{"mode", "read"}, {"u-u-i-d:7", "1"}});
  CHECK(as_text(lock.server.command({"GET", timeout_of("u-u-i-d:7")})) == "1");
  for (const std::string& key : {std::string("k"), timeout_of("u-u-i-d:7")}) {
    CAPTURE(key);
    CHECK(lock.pttl(key) > 29'000);
    CHECK(lock.pttl(key) <= 30'000);
  }
  CHECK(word(lock.end_read("u-u-i-d:7")) == "released");
  CHECK(lock.exists("k") == 0);
  CHECK(lock.exists(timeout_of("u-u-i-d:7")) == 0);
}

RW_LOCK_CASE("rw: a writer on the wire")
{
  REQUIRE(word(lock.write("a")) == "granted");
  CHECK(lock.hash("k") == HashFields{{"mode", "write"}, {"a:write", "1"}});
  CHECK(lock.pttl("k") > 29'000);
  CHECK(lock.exists(timeout_of("a")) == 0);
  CHECK(word(lock.end_write("a")) == "released");
  CHECK(lock.exists("k") == 0);
}

RW_LOCK_CASE("rw: a name with a tag of its own has its timeouts as Redisson names them")
{
  const LockKeys keys(*LockName::parse("a{b}c"), Reader{});
  lock.server.command({"EVAL",
                       scripts_of(Reader{}).acquire.source(),
                       "11",
                       keys.lock,
                       keys.fence,
                       keys.holder,
                       keys.force,
                       keys.events,
                       keys.queue,
                       keys.waiters,
                       keys.reserved,
                       keys.fair,
                       keys.second,
                       keys.done,
                       "o",
                       keys.channel,
                       keys.owner_channel,
                       "read",
                       "",
                       "o",
                       "30000",
                       "",
                       "try",
                       "0",
                       "0"});
  CHECK(keys.channel == "redisson_rwlock:a{b}c");
  CHECK(lock.exists("a{b}c:o:rwlock_timeout:1") == 1);
}

RW_LOCK_CASE("rw: readers together, writers alone")
{
  CHECK(word(lock.read("a")) == "granted");
  CHECK(word(lock.read("b")) == "granted");
  const Reply refused = lock.write("w");
  CHECK(word(refused) == "busy");
  CHECK(refused.elements.at(1).integer > 29'000);
  CHECK(lock.hash("k") == HashFields{{"mode", "read"}, {"a", "1"}, {"b", "1"}});
  lock.end_read("a");
  CHECK(word(lock.write("w")) == "busy");
  lock.end_read("b");
  CHECK(word(lock.write("w")) == "granted");
  CHECK(word(lock.write("v")) == "busy");
  CHECK(word(lock.read("a")) == "busy");
  CHECK(lock.read("a").elements.at(2).text == "w");
  CHECK(lock.hash("k") == HashFields{{"mode", "write"}, {"w:write", "1"}});
}

RW_LOCK_CASE("rw: what is said when it becomes free: 0 after the last reader, 1 and 0 after a writer")
{
  ChannelListener listener(lock.server, rw_channel);
  lock.read("a"), lock.read("b");
  lock.end_read("a");
  CHECK(listener.received() == Words{});
  lock.end_read("b");
  CHECK(listener.received() == Words{"0"});
  lock.end_read("b");
  CHECK(listener.received() == Words{});
  lock.write("w");
  lock.end_write("w");
  CHECK(listener.received() == Words{"1", "0"});
  lock.write("w");
  lock.eval_as(Writer{}, scripts_of(Writer{}).force, "w", {"eve", "take", "1000"});
  CHECK(listener.received() == Words{"1", "0"});
}

RW_LOCK_CASE("rw: a writer may read as well, and go on reading, and then other readers are admitted")
{
  ChannelListener listener(lock.server, rw_channel);
  lock.write("a", 20'000);
  CHECK(lock.nested(Reader{}, "a", "inner").elements.at(2).integer == 2);
  CHECK(lock.hash("k") == HashFields{{"mode", "write"}, {"a:write", "1"}, {"a", "1"}});
  CHECK(word(lock.read("b")) == "busy");
  CHECK(word(lock.end_write("a")) == "still_held");
  CHECK(listener.received() == Words{"1", "0"});
  CHECK(lock.hash("k") == HashFields{{"mode", "read"}, {"a", "1"}});
  CHECK(lock.pttl("k") > 0);
  CHECK(word(lock.read("b")) == "granted");
  CHECK(word(lock.end_nested(Reader{}, "a", "inner")) == "released");
  CHECK(word(lock.end_read("b")) == "released");
  CHECK(listener.received() == Words{"0"});
}

RW_LOCK_CASE("rw: a writer that stops reading keeps its lease")
{
  lock.write("a", 30'000);
  lock.nested(Reader{}, "a", "one", 1000);
  lock.nested(Reader{}, "a", "two", 1000);
  lock.server.command({"PEXPIRE", timeout_of("a"), "500"});
  CHECK(word(lock.end_nested(Reader{}, "a", "two")) == "still_held");
  CHECK(lock.pttl("k") > 29'000);
  CHECK(word(lock.end_nested(Reader{}, "a", "one")) == "still_held");
  CHECK(lock.hash("k") == HashFields{{"mode", "write"}, {"a:write", "1"}});
  CHECK(lock.pttl("k") > 29'000);
}

RW_LOCK_CASE("rw: a read hold does not become a write hold")
{
  lock.read("a");
  const Reply refused = lock.nested(Writer{}, "a", "inner");
  CHECK(word(refused) == "other");
  CHECK(has(refused.elements.at(1).text, "cannot become"));
  CHECK(lock.hash("k") == HashFields{{"mode", "read"}, {"a", "1"}});
}

RW_LOCK_CASE("rw: nested reads have a timeout each, in a row, that lasts no longer than the owner's lease")
{
  lock.read("other", 300'000);
  lock.read("a", 2000);
  lock.nested(Reader{}, "a", "inner", 1000);
  CHECK(lock.hash("k").at("a") == "2");
  CHECK(lock.pttl(timeout_of("a", 2)) > 500);
  CHECK(lock.pttl(timeout_of("a", 2)) <= 2000);
  CHECK(word(lock.end_read("a")) == "still_held");
  CHECK(lock.hash("k").at("a") == "1");
  CHECK(lock.exists(timeout_of("a", 2)) == 0);
  CHECK(lock.exists(timeout_of("a", 1)) == 1);
}

RW_LOCK_CASE("rw: a reader whose timeout is gone has lost its hold, though others keep the hash alive")
{
  lock.read("a"), lock.read("b");
  lock.server.command({"DEL", timeout_of("a")});
  const Reply renewed = lock.eval_as(Reader{}, scripts_of(Reader{}).renew, "a", {"30000"});
  CHECK(word(renewed) == "lost");
  CHECK(renewed.elements.at(1).text == "none");  // b has taken nothing from it
  CHECK(lock.exists(timeout_of("a")) == 0);
  CHECK(word(lock.end_read("a")) == "lost");
  CHECK(lock.holders().size() == 1);
  CHECK(word(lock.end_read("b")) == "released");
  CHECK(lock.exists("k") == 0);
}

RW_LOCK_CASE("rw: a reader that comes back after its timeout counts as one hold, not as two")
{
  lock.read("a"), lock.read("b");
  lock.server.command({"DEL", timeout_of("a")});
  CHECK(lock.read("a").elements.at(2).integer == 1);
  CHECK(lock.hash("k") == HashFields{{"mode", "read"}, {"a", "1"}, {"b", "1"}});
  CHECK(word(lock.end_read("a")) == "released");
  CHECK(lock.hash("k") == HashFields{{"mode", "read"}, {"b", "1"}});
}

RW_LOCK_CASE("rw: a lost lock names the writer that has it")
{
  lock.write("a");
  lock.server.command({"DEL", "k"});
  lock.write("b");
  for (const LockKind& kind : {LockKind{Writer{}}, LockKind{Reader{}}}) {
    const Reply lost = lock.eval_as(kind, scripts_of(kind).renew, "a", {"1000"});
    CHECK(word(lost) == "lost");
    CHECK(lost.elements.at(1).text == "held");
    CHECK(lost.elements.at(2).text == "b");
  }
}

RW_LOCK_CASE("rw: a killed reader is forgotten when the living have left, a killed writer when its lease ends")
{
  lock.read("dead", 60), lock.read("a");
  wait_until([&] { return lock.exists(timeout_of("dead")) == 0; }, "the killed reader's timeout is over");
  CHECK(word(lock.write("w")) == "busy");
  lock.end_read("a");
  CHECK(word(lock.write("w", 60)) == "granted");
  wait_until([&] { return word(lock.read("b")) == "granted"; }, "the killed writer's lease is over");
  CHECK(lock.hash("k") == HashFields{{"mode", "read"}, {"b", "1"}});
}

RW_LOCK_CASE("rw: a release does not extend the other holders' time")
{
  lock.read("long", 300'000), lock.read("short", 5000);
  CHECK(lock.pttl("k") > 290'000);
  lock.end_read("long");
  CHECK(lock.pttl("k") <= 5000);
  CHECK(lock.pttl("k") > 3000);
}

RW_LOCK_CASE("rw: --min-hold of a reader shortens the whole, whatever dead readers are in it")
{
  lock.read("dead"), lock.read("a");
  lock.server.command({"DEL", timeout_of("dead")});
  lock.release("a", "a", 2000);
  CHECK(lock.pttl("k") <= 2000);
  CHECK(lock.pttl(timeout_of("a")) <= 2000);
  lock.read("b", 9000);
  lock.release("b", "b", 500);
  CHECK(lock.pttl("k") <= 2000);
  CHECK(lock.pttl("k") > 500);
}

RW_LOCK_CASE("rw: the dead do not pile up in a hash that others keep alive")
{
  lock.read("living", 600'000);
  Words fields{"HSET", "k"};
  Words records{"HSET", "rlock:holder:{k}"};
  for (int i = 0; i < 400; ++i) {
    const std::string owner = "dead" + std::to_string(i);
    fields.insert(fields.end(), {owner, "1"});
    records.insert(records.end(), {owner, "host=h", "hold:" + owner, owner, "count:" + owner, "1"});
  }
  lock.server.command(fields);
  lock.server.command(records);
  const std::string visitor = "visitor";
  for (int i = 0; i < 5000; ++i) {  // one in 64 removes the dead
    REQUIRE(word(lock.read(visitor)) == "granted");
    REQUIRE(word(lock.end_read(visitor)) == "released");
    if (lock.hash("k").size() == 2 && lock.hash("rlock:holder:{k}").size() == 2) {
      break;
    }
  }
  CHECK(lock.hash("k") == HashFields{{"mode", "read"}, {"living", "1"}});
  CHECK(lock.hash("rlock:holder:{k}").count("hold:living") == 1);
  CHECK(word(lock.end_read("living")) == "released");
  CHECK(lock.exists("k") == 0);
}

RW_LOCK_CASE("rw: with six hundred readers each is still let go, and some are shown")
{
  for (int i = 0; i < 600; ++i) {
    REQUIRE(word(lock.read("r" + std::to_string(i), 600'000)) == "granted");  // none may end before the last is let go
  }
  const Reply seen = lock.inspect();
  CHECK(seen.elements.at(4).integer == 600);
  CHECK(!lock.holders().empty());
  CHECK(lock.write("w").elements.at(3).integer == 1);
  for (int i = 0; i < 600; ++i) {
    REQUIRE(word(lock.end_read("r" + std::to_string(i))) == "released");
  }
  CHECK(lock.exists("k") == 0);
  CHECK(lock.exists("rlock:holder:{k}") == 0);
}

RW_LOCK_CASE("rw: inspect shows each holder once, with what it holds")
{
  lock.write("a");
  lock.nested(Reader{}, "a", "inner");
  auto seen = lock.holders();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].owner == "a");
  CHECK(seen[0].count == 2);
  CHECK(seen[0].mode == "write");
  CHECK(seen[0].info == "host=h\npid=1");
  lock.end_write("a");
  seen = lock.holders();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].mode == "read");
}
