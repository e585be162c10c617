// SPDX-License-Identifier: Apache-2.0
// The queue (lua/lib/queue.lua) where several owners may hold a lock at once; queue_foreign_test.cpp has foreign clients beside
// it. Over 300 lines: one case for each rule of the queue.
#include "lua/queued_read_write.h"

using namespace rlock::test;

namespace {

constexpr const char* line_of_readers = "rlock:queue-rw:{k}";
constexpr const char* line_for_permits = "rlock:queue-permits:{k}";
const std::string long_ago = "1";  // a ticket older than SUBSCRIBE_GRACE

Words in_line(const ScriptedLock& lock, const char* line)
{
  return as_texts(lock.server.command({"ZRANGE", line, "0", "-1"}));
}

bool told_to_look(const Words& words, int latest)
{
  return std::any_of(words.begin(), words.end(), [&](const std::string& text) {
    return text.starts_with("look ") && std::stoi(text.substr(5)) <= latest;
  });
}

// A thousand waiters that were killed long ago.
void add_dead(const ScriptedLock& lock, const LockKeys& keys, const std::string& mode)
{
  Words queue{"ZADD", keys.queue}, records{"HSET", keys.waiters};
  for (int i = 1; i <= 1000; ++i) {
    const std::string waiter = "dead" + std::to_string(i);
    queue.insert(queue.end(), {std::to_string(i), waiter});
    records.insert(records.end(), {waiter, "host=h\npid=1", "wish:" + waiter, mode});
  }
  lock.server.command(queue);
  lock.server.command(records);
}

}  // namespace

QUEUED_RW_CASE("queue script: a reader behind a waiting writer is refused, whether it waits or only tries")
{
  ChannelListener writer = subscribe_as(lock, "w");
  ChannelListener reader = subscribe_as(lock, "b");
  lock.read("a");
  CHECK(word(lock.write("w")) == "busy");
  for (const char* options : {"try", "wait"}) {
    CHECK(word(lock.read("b", options)) == "busy");
  }
  CHECK(in_line(lock, line_of_readers) == Words{"w", "b"});
  CHECK(word(lock.read("a")) == "granted");  // a holder is not affected

  lock.end_read("a");
  CHECK(lock.hash("k") == HashFields{{"mode", "write"}, {"w:write", "1"}});
  CHECK(lock.pttl("k") <= 2000);
  CHECK(has(writer.received(), "yours"));
  CHECK(word(lock.write("w")) == "granted");
  CHECK(lock.pttl("k") > 29'000);
  CHECK(has(reader.received(), "next 30000"));
  lock.end_write("w");
  CHECK(reader.received() == Words{"yours"});
  CHECK(word(lock.read("b")) == "granted");
}

SCRIPT_CASE("queue script: a hand-over lasts no longer than the lease of the waiter, which may be dead")
{
  ChannelListener waiter = subscribe_as(lock, "w");
  ChannelListener next = subscribe_as(lock, "n");
  CHECK(word(lock.acquire("a")) == "granted");
  const Script& acquire = scripts_of(Plain{}).acquire;
  lock.eval(acquire, "w", {"w", "300", "host=h\npid=1\nlease=300\nauto=1", "wait", "0", "0"});
  lock.wait("n");
  lock.release("a");
  CHECK(has(waiter.received(), "yours"));
  CHECK(lock.pttl("k") <= 300);
  CHECK(has(next.received(), "claim 300"));
}

// A waiter that came when many waited rests for long, and learns only by this message that it is first.
SCRIPT_CASE("queue script: the first waiter learns when the lock ends, also past a dead one")
{
  ChannelListener holder = subscribe_as(lock, "w");
  ChannelListener behind = subscribe_as(lock, "b");
  lock.acquire("a");
  lock.wait("w", long_ago), lock.wait("dead", "2"), lock.wait("b");
  lock.release("a");
  CHECK(behind.received() == Words{"claim 2000"});
  CHECK(word(lock.acquire("w", "w", 3000)) == "granted");
  CHECK(behind.received() == Words{"next 3000"});
  CHECK(in_line(lock, "rlock:queue:{k}") == Words{"b"});
}

QUEUED_RW_CASE("queue script: readers behind each other come in together, those behind the next writer do not")
{
  ChannelListener two(lock.server, Words{"rlock:owner:{k}:r1", "rlock:owner:{k}:r2"});
  ChannelListener writer = subscribe_as(lock, "w2");
  ChannelListener last = subscribe_as(lock, "r3");
  lock.write("w1");
  lock.read("r1"), lock.read("r2"), lock.write("w2"), lock.read("r3");
  lock.end_write("w1");
  CHECK(two.received() == Words{"yours", "yours"});
  CHECK(writer.received() == Words{"claim 2000"});
  CHECK(last.received() == Words{"watch 3020"});
  CHECK(lock.hash("k") == HashFields{{"mode", "read"}, {"r1", "1"}, {"r2", "1"}});
  lock.read("r1"), lock.read("r2");
  lock.end_read("r1");
  CHECK(in_line(lock, line_of_readers) == Words{"w2", "r3"});
  lock.end_read("r2");
  CHECK(has(writer.received(), "yours"));
  CHECK(in_line(lock, line_of_readers) == Words{"r3"});
}

QUEUED_RW_CASE("queue script: a dead writer in front blocks no reader, a living one does")
{
  lock.read("a");
  {
    const ChannelListener writer = subscribe_as(lock, "w");
    lock.write("w", "wait", 30'000, long_ago);
    CHECK(word(lock.read("b")) == "busy");
  }
  wait_until([&] { return word(lock.read("b")) == "granted"; }, "the server knows that the waiter listens no more");
  CHECK(in_line(lock, line_of_readers) == Words{});
  CHECK(lock.hash("rlock:waiters-rw:{k}").count("w") == 0);
}

QUEUED_RW_CASE("queue script: a dead writer in front is found by a reader's renewal, a living one stays")
{
  const auto renew = [&] { return word(lock.renew("a")); };
  lock.read("a");
  ChannelListener behind = subscribe_as(lock, "b");
  {
    const ChannelListener writer = subscribe_as(lock, "w");
    lock.write("w", "wait", 30'000, long_ago);
    lock.read("b");
    CHECK(renew() == "kept");
    CHECK(in_line(lock, line_of_readers) == Words{"w", "b"});
  }
  wait_until([&] { return renew() == "kept" && in_line(lock, line_of_readers) == Words{}; }, "the dead one is gone");
  CHECK(has(behind.received(), "yours"));
  CHECK(lock.hash("k") == HashFields{{"mode", "read"}, {"a", "1"}, {"b", "1"}});
}

QUEUED_RW_CASE("queue script: a writer killed while it waits is found by the next renewal of a job that reads")
{
  const auto run = [&](const char* kind) {
    return rlock_argv({"run", "-S", lock.server.url(), kind, "-k", "k", "--ttl", "3s", "--", "sleep", "60"});
  };
  const Process reader(run("-s"));
  wait_until([&] { return lock.hash("k").size() == 2; }, "one reads");
  Process writer(run("-x"));
  wait_until([&] { return in_line(lock, line_of_readers).size() == 1 && listening(lock.server) == 2; },
             "a writer waits and listens");
  ChannelListener behind = subscribe_as(lock, "b");  // does nothing by itself
  CHECK(word(lock.read("b")) == "busy");
  writer.signal(SIGKILL);
  wait_until([&] { return has(behind.received(), "yours"); }, "the reader behind it is let in",
             std::chrono::seconds(30));
  CHECK(in_line(lock, line_of_readers) == Words{});
}

QUEUED_RW_CASE("queue script: a writer that gives up lets in the readers behind it")
{
  ChannelListener two(lock.server, Words{"rlock:owner:{k}:r1", "rlock:owner:{k}:r2"});
  const ChannelListener writer = subscribe_as(lock, "w");
  lock.read("a");
  lock.write("w"), lock.read("r1"), lock.read("r2");
  CHECK(word(lock.end_write("w")) == "left");
  CHECK(two.received() == Words{"yours", "yours"});
  CHECK(lock.hash("k").size() == 4);
}

QUEUED_RW_CASE("queue script: a writer that goes on reading lets in the readers in front of the next writer")
{
  ChannelListener reader = subscribe_as(lock, "r");
  const ChannelListener writer = subscribe_as(lock, "w2");
  lock.write("w");
  lock.eval_as(Reader{}, scripts_of(Reader{}).acquire, "w", {"inner", "30000", "", "try", "0", "0"});
  lock.read("r"), lock.write("w2");
  CHECK(word(lock.end_write("w")) == "still_held");
  CHECK(reader.received() == Words{"yours"});
  CHECK(lock.hash("k") == HashFields{{"mode", "read"}, {"w", "1"}, {"r", "1"}});
  CHECK(in_line(lock, line_of_readers) == Words{"w2"});
}

QUEUED_RW_CASE("queue script: a hundred and thirty readers behind a writer all come in, by a few that look")
{
  Words channels;
  lock.write("w");
  for (int i = 0; i < 130; ++i) {
    channels.push_back("rlock:owner:{k}:r" + std::to_string(i));
  }
  ChannelListener listeners(lock.server, channels);
  for (int i = 0; i < 130; ++i) {
    lock.read("r" + std::to_string(i));
  }
  lock.end_write("w");
  const Words received = listeners.received();
  CHECK(std::count(received.begin(), received.end(), "yours") == 50);
  CHECK(std::count(received.begin(), received.end(), "look 0") == 10);
  CHECK(word(lock.read("r50")) == "granted");
  CHECK(word(lock.read("r129")) == "granted");
  CHECK(in_line(lock, line_of_readers) == Words{});
  CHECK(lock.hash("k").size() == 131);
}

TEST_CASE("queue script: permits go in order, past the dead")
{
  const ScriptedLock lock(Permits{2});
  ChannelListener second = subscribe_as(lock, "w2");
  ChannelListener third = subscribe_as(lock, "w3");
  lock.acquire("a"), lock.acquire("b");
  lock.wait("dead", long_ago), lock.wait("w2"), lock.wait("w3");
  lock.release("a");
  CHECK(second.received() == Words{"yours"});
  CHECK(third.received() == Words{"claim 2000"});
  CHECK(word(lock.wait("new")) == "busy");
  CHECK(in_line(lock, line_for_permits) == Words{"w3", "new"});
  CHECK(word(lock.wait("w2")) == "granted");
  CHECK(third.received() == Words{"next 30000"});
  lock.release("b");
  CHECK(third.received() == Words{"yours"});
  CHECK(as_int(lock.server.command({"ZCARD", "{k}:timeout"})) == 2);
}

TEST_CASE("queue script: as many come in as there is room for, when several holders have died")
{
  const ScriptedLock lock(Permits{3});
  ChannelListener second = subscribe_as(lock, "w2");
  ChannelListener third = subscribe_as(lock, "w3");
  const ChannelListener first = subscribe_as(lock, "w1");
  lock.acquire("a"), lock.acquire("dead1"), lock.acquire("dead2");
  lock.wait("w1"), lock.wait("w2"), lock.wait("w3");
  lock.server.command({"ZADD", "{k}:timeout", "1", "dead1", "1", "dead2"});  // their time is over
  CHECK(word(lock.wait("w1")) == "granted");
  CHECK(has(second.received(), "yours"));
  CHECK_FALSE(has(third.received(), "yours"));
  CHECK(in_line(lock, line_for_permits) == Words{"w3"});
}

TEST_CASE("queue script: a request without waiting does not pass the waiters")
{
  const ScriptedLock lock(Permits{1});
  ChannelListener waiter = subscribe_as(lock, "w");
  lock.acquire("dead");
  lock.wait("w");
  lock.server.command({"ZADD", "{k}:timeout", "1", "dead"});  // its time is over
  CHECK(word(lock.acquire("x")) == "busy");
  CHECK(waiter.received() == Words{"yours"});
  CHECK(word(lock.wait("w")) == "granted");
}

TEST_CASE("queue script: a permit that is handed over and not confirmed goes to the next request")
{
  const ScriptedLock lock(Permits{1});
  const ChannelListener first = subscribe_as(lock, "w1");
  const ChannelListener second = subscribe_as(lock, "w2");
  lock.acquire("a");
  lock.wait("w1"), lock.wait("w2");
  lock.release("a");  // w1 never confirms
  wait_until([&] { return word(lock.wait("w2")) == "granted"; }, "the claim is over");
  CHECK(as_text(lock.server.command({"GET", "k"})) == "0");
  CHECK(as_int(lock.server.command({"ZCARD", "{k}:timeout"})) == 1);
}

QUEUED_RW_CASE("queue script: the first waiter is told when to look, if holders may end without a message")
{
  ChannelListener writer = subscribe_as(lock, "w");
  lock.read("long", "try", 300'000), lock.read("killed", "try", 2000);
  lock.write("w");
  lock.end_read("long");
  const Words received = writer.received();
  CHECK(told_to_look(received, 2000));
  CHECK_FALSE(has(received, "look 0"));
  CHECK(lock.write("w").elements.at(1).integer <= 2000);
}

TEST_CASE("queue script: an owner that finds its lock gone admits the next")
{
  for (const bool by_release : {false, true}) {
    CAPTURE(by_release);
    const ScriptedLock lock;
    ChannelListener next = subscribe_as(lock, "w1");
    lock.acquire("a");
    lock.wait("w1", long_ago);
    lock.server.command({"DEL", "k"});
    CHECK(word(by_release ? lock.release("a") : lock.renew("a")) == "lost");
    CHECK(next.received() == Words{"yours"});
    CHECK(as_int(lock.server.command({"HEXISTS", "k", "w1"})) == 1);
  }
}

SCRIPT_CASE("queue script: a caller that admits a waiter watches its confirmation, and so does the next waiter")
{
  ChannelListener sleeper = subscribe_as(lock, "w1");
  ChannelListener next = subscribe_as(lock, "w2");
  ChannelListener caller = subscribe_as(lock, "w3");
  lock.acquire("a");
  lock.wait("w1", long_ago), lock.wait("w2", long_ago), lock.wait("w3", long_ago);
  lock.server.command({"DEL", "k"});
  CHECK(word(lock.wait("w3", long_ago)) == "busy");
  CHECK(sleeper.received() == Words{"yours"});
  CHECK(next.received() == Words{"claim 2000"});
  CHECK(caller.received() == Words{"watch 3020", "claim 2000"});
  CHECK(word(lock.wait("w1")) == "granted");
  CHECK(next.received() == Words{"next 30000"});
}

TEST_CASE("queue script: a lost lock is reported as lost, whatever blocks the next waiter")
{
  for (const bool by_release : {false, true}) {
    CAPTURE(by_release);
    const ScriptedLock lock;
    lock.acquire("a");
    lock.wait("w1", long_ago);
    lock.server.command({"DEL", "k"});
    lock.server.command({"SET", "rlock:waiters:{k}", "not what waiters tell"});
    CHECK(word(by_release ? lock.release("a") : lock.renew("a")) == "lost");
  }
}

SCRIPT_CASE("queue script: a release tells whether a waiter was admitted")
{
  const ChannelListener next = subscribe_as(lock, "w1");
  lock.acquire("a");
  lock.wait("w1", long_ago);
  const Reply passed_on = lock.release("a");
  REQUIRE(word(passed_on) == "released");
  CHECK(passed_on.elements.at(1).integer == 1);
  const Reply kept = lock.release("w1");
  REQUIRE(word(kept) == "released");
  CHECK(kept.elements.at(1).integer == 0);
}

TEST_CASE("queue script: a waiter whose record was lost keeps its place, and gets what it asked for")
{
  for (const bool is_asked : {false, true}) {
    CAPTURE(is_asked);
    const QueuedReadWrite lock;
    ChannelListener writer = subscribe_as(lock, "w");
    lock.read("r");
    const std::string ticket = lock.write("w").elements.at(6).text;
    lock.server.command({"DEL", "rlock:waiters-rw:{k}"});
    if (is_asked) {
      CHECK(word(lock.write("w", "wait", 30'000, ticket)) == "busy");
    }
    lock.end_read("r");
    CHECK(writer.received() == Words{is_asked ? "yours" : "look 0"});
    CHECK(word(lock.write("w", "wait", 30'000, ticket)) == "granted");
    CHECK(lock.hash("k")["mode"] == "write");
  }
}

TEST_CASE("queue script: of a thousand dead waiters each script looks at fifty, until the next client has the lock")
{
  for (const LockKind& kind : std::vector<LockKind>{Plain{}, Reader{}, Writer{}, Permits{1}, StringLock{}}) {
    CAPTURE(kind.index());
    const ScriptedLock lock(kind);
    const LockKeys keys(*LockName::parse(lock.name), kind);
    const auto waiting = [&] { return as_int(lock.server.command({"ZCARD", keys.queue})); };
    std::int64_t before = 1000;
    const auto looks_at_fifty = [&](const Reply& reply) {
      CHECK(waiting() >= before - 50);
      before = waiting();
      return word(reply);
    };
    lock.acquire("a");
    add_dead(lock, keys, std::holds_alternative<Reader>(kind) ? "write" : requested_mode(kind));
    CHECK(looks_at_fifty(lock.renew("a")) == "kept");
    CHECK(looks_at_fifty(lock.release("a")) == "released");
    for (int calls = 0; looks_at_fifty(lock.acquire("b")) != "granted"; ++calls) {
      REQUIRE(calls < 25);
    }
  }
}

SCRIPT_CASE("queue script: a hand-over past dead waiters looks at fifty behind the new holder")
{
  const LockKeys keys(*LockName::parse(lock.name), Plain{});
  ChannelListener waiter = subscribe_as(lock, "w");
  lock.acquire("a");
  add_dead(lock, keys, "");
  lock.server.command({"ZADD", keys.queue, "5", "w"});
  lock.release("a");
  CHECK(waiter.received() == Words{"yours"});
  CHECK(as_int(lock.server.command({"ZCARD", keys.queue})) >= 945);
}
