// SPDX-License-Identifier: Apache-2.0
// The queue (lua/lib/queue.lua) beside foreign clients, which know nothing of it: what they hear, and when it is their turn.
#include "lua/queued_read_write.h"
#include "support/foreign_kinds.h"

using namespace rlock::test;

namespace {

constexpr const char* reserved = "rlock:reserved:{k}";

// When the lock was last left to foreign clients; empty: never. It lasts longer than the 10 ms of `reserved`.
std::string left_to_foreign(const ScriptedLock& lock, const std::string& waiters = "rlock:waiters:{k}")
{
  return lock.hash(waiters)["#left"];
}

}  // namespace

SCRIPT_CASE("queue script: a release tells the first waiter of a fair lock of Redisson, also if no rlock waits")
{
  ChannelListener fair(lock.server, Words{"redisson_lock__channel:{k}:jvm:1"});
  lock.server.command({"RPUSH", "redisson_lock_queue:{k}", "jvm:1"});
  lock.acquire("a");
  CHECK(word(lock.release("a")) == "released");
  CHECK(fair.received() == Words{"0"});
}

QUEUED_RW_CASE("queue script: the first waiter is told about a foreign holder, which notifies no single owner")
{
  const ForeignReadWrite java(lock.server, "uuid:1");
  ChannelListener writer = subscribe_as(lock, "w");
  lock.read("a"), lock.read("b");
  lock.write("w");
  java.read();  // ignores the queue
  lock.end_read("a");
  CHECK(has(writer.received(), "look 0"));
  const Reply refused = lock.write("w");
  CHECK(refused.elements.at(2).text == "uuid:1");
  CHECK(refused.elements.at(4).kind == Reply::Kind::nil);
}

QUEUED_RW_CASE("queue script: a read lock handed to an rlock reader is announced to foreign readers")
{
  ChannelListener java(lock.server, "redisson_rwlock:{k}");
  const ChannelListener waiters(lock.server, Words{"rlock:owner:{k}:r", "rlock:owner:{k}:w2"});
  lock.write("w");
  lock.read("r"), lock.write("w2");
  lock.end_write("w");
  CHECK(java.received() == Words{"1", "0"});
  lock.read("r");
  lock.end_read("r");  // to w2
  CHECK(java.received() == Words{});
  CHECK(lock.hash("k").count("w2:write") == 1);
}

TEST_CASE("queue script: a permit handed to an rlock waiter is not announced, remaining ones are")
{
  const ScriptedLock lock(Permits{2});
  ChannelListener java(lock.server, "redisson_sc:{k}");
  const ChannelListener waiter = subscribe_as(lock, "w");
  lock.acquire("a"), lock.acquire("b");
  lock.wait("w");
  lock.release("a");
  CHECK(java.received() == Words{});
  lock.wait("w");
  lock.server.command({"ZADD", "{k}:timeout", "1", "b"});  // killed
  const ChannelListener another = subscribe_as(lock, "v");
  lock.wait("v"), lock.release("v");
  CHECK(java.received() == Words{"1"});

  lock.acquire("a");
  lock.wait("v");
  lock.server.command({"ZADD", "{k}:timeout", "1", "a"});
  lock.release("w");  // to v, and one permit is left over
  CHECK(java.received() == Words{"1"});
}

TEST_CASE("queue script: every third hand-over is left to foreign clients that wait")
{
  struct Row {
    LockKind kind;
    const char* channel;
    Words words;
  };
  for (const Row& row : {Row{Writer{}, "redisson_rwlock:{k}", {"1", "0"}}, Row{Permits{1}, "redisson_sc:{k}", {"1"}}}) {
    CAPTURE(row.channel);
    const ScriptedLock lock(row.kind);
    ChannelListener java(lock.server, row.channel);
    ChannelListener waiters(lock.server, Words{"rlock:owner:{k}:o1", "rlock:owner:{k}:o2", "rlock:owner:{k}:o3"});
    lock.acquire("o0");
    lock.wait("o1"), lock.wait("o2"), lock.wait("o3");
    for (const std::string owner : {"o0", "o1"}) {
      lock.release(owner);
      CHECK(java.received() == Words{});
      lock.wait(owner == "o0" ? "o1" : "o2");
    }
    waiters.received();
    CHECK(word(lock.release("o2")) == "released");
    CHECK(java.received() == row.words);
    CHECK(has(waiters.received(), "look 10"));
    CHECK(lock.pttl(reserved) <= 10);
    wait_until([&] { return word(lock.wait("o3")) == "granted"; }, "no foreign client took the lock");
  }
}

TEST_CASE("queue script: a JVM that waits for one of several servers hears that an attempt of a quorum was taken back")
{
  for (const LockKind& kind : {LockKind(Plain{}), LockKind(Writer{})}) {
    const ScriptedLock lock(kind);
    const LockKeys keys(*LockName::parse("k"), kind);
    ChannelListener java(lock.server, keys.channel);
    lock.acquire("a");
    CHECK(word(lock.eval(scripts_of(kind).release, "a", {"a", "-1", "0", "0"})) == "released");
    CHECK(java.received() == Words{"00"});
    CHECK(lock.exists("k") == 0);
  }
}

TEST_CASE("queue script: every third hand-over is left to the waiters of Redisson's fair lock")
{
  for (const bool is_alive : {true, false}) {
    CAPTURE(is_alive);
    const ScriptedLock lock;
    lock.server.command({"RPUSH", "redisson_lock_queue:{k}", "uuid:1"});
    ChannelListener java(lock.server, is_alive ? "redisson_lock__channel:{k}:uuid:1" : "another");
    const ChannelListener waiters(lock.server, Words{"rlock:owner:{k}:o1", "rlock:owner:{k}:o2", "rlock:owner:{k}:o3"});
    lock.acquire("o0");
    lock.wait("o1"), lock.wait("o2"), lock.wait("o3");
    for (const char* owner : {"o0", "o1", "o2"}) {
      CHECK(left_to_foreign(lock) == "");
      lock.release(owner);
      lock.wait("o" + std::to_string(owner[1] - '0' + 1));
    }
    CHECK((left_to_foreign(lock) != "") == is_alive);
    CHECK(java.received() == (is_alive ? Words{"0"} : Words{}));
  }
}

SCRIPT_CASE("queue script: the first waiter behind a foreign holder asks once a second: a fair lock is silent")
{
  lock.server.command({"HSET", "k", "uuid:1", "1"});
  lock.server.command({"PEXPIRE", "k", "60000"});
  CHECK(lock.wait("a").elements.at(7).integer == 1000);
  CHECK(lock.wait("b").elements.at(7).kind == Reply::Kind::nil);
  lock.server.command({"PEXPIRE", "k", "500"});
  CHECK(lock.wait("a").elements.at(7).kind == Reply::Kind::nil);  // the ttl is over before that
  lock.server.command({"DEL", "k"});
  CHECK(word(lock.wait("a")) == "granted");
  CHECK(lock.wait("b").elements.at(7).kind == Reply::Kind::nil);
}

TEST_CASE("queue script: what foreign clients take from an empty queue does not count against their turns")
{
  struct Row {
    LockKind kind;
    const char* waiters;
  };
  for (const Row& row : {Row{Plain{}, "rlock:waiters:{k}"}, Row{Writer{}, "rlock:waiters-rw:{k}"}}) {
    CAPTURE(row.waiters);
    const ScriptedLock lock(row.kind);
    const ChannelListener java(lock.server, LockKeys(*LockName::parse("k"), row.kind).channel);
    const ChannelListener waiters(lock.server, Words{"rlock:owner:{k}:o1", "rlock:owner:{k}:o2"});
    lock.acquire("o0");
    lock.wait("o1"), lock.wait("o2");
    // A turn of foreign clients of 24 ms, more than five seconds ago.
    const auto seconds = std::stoll(lock.server.command({"TIME"}).elements.at(0).text);
    const std::string left = std::to_string((seconds - 6) * 1'000'000);
    lock.server.command(
        {"HSET", row.waiters, "#left", left, "#took", std::to_string((seconds - 6) * 1'000'000 + 24'000)});
    // Found free, as after a foreign client that came while the queue was empty.
    lock.server.command({"DEL", "k"});
    CHECK(word(lock.wait("o1")) == "granted");
    lock.server.command({"HSET", row.waiters, "#turn", "2"});
    CHECK(word(lock.release("o1")) == "released");
    CHECK(left_to_foreign(lock, row.waiters) > left);
  }
}

SCRIPT_CASE("queue script: after a spell of foreign clients the queue keeps the lock for as long as that took")
{
  const ChannelListener java(lock.server, "redisson_lock__channel:{k}");
  const ChannelListener waiters(lock.server, Words{"rlock:owner:{k}:o1", "rlock:owner:{k}:o2"});
  lock.acquire("o0");
  lock.wait("o1"), lock.wait("o2");
  const auto seconds = std::stoll(lock.server.command({"TIME"}).elements.at(0).text);
  const std::string left = std::to_string((seconds - 1000) * 1'000'000);
  lock.server.command({"HSET", "rlock:waiters:{k}", "#turn", "2", "#left", left});
  lock.server.command({"DEL", "k"});  // the turn ends now, after a thousand seconds: LONGEST_PREFERENCE counts
  CHECK(word(lock.wait("o1")) == "granted");
  CHECK(lock.hash("rlock:waiters:{k}").count("#took") == 1);
  lock.release("o1");
  CHECK(left_to_foreign(lock) == left);
}

QUEUED_RW_CASE("queue script: a lock that is not free yet is not left to foreign clients")
{
  const ChannelListener java(lock.server, "redisson_rwlock:{k}");
  const ChannelListener writer = subscribe_as(lock, "w");
  for (const char* owner : {"a", "b", "c", "d", "e"}) {
    lock.read(owner);
  }
  lock.write("w");
  for (const char* owner : {"a", "b", "c", "d"}) {
    lock.end_read(owner);
    CHECK(left_to_foreign(lock, "rlock:waiters-rw:{k}") == "");
  }
  lock.end_read("e");
  CHECK(lock.hash("k").count("w:write") == 1);
}
