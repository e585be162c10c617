// SPDX-License-Identifier: Apache-2.0
// The message of a hand-over, on which a waiter's job begins: it is true, and it is sent only once the lock is handed over.
#include "lua/kinds.h"

#include <sstream>

using namespace rlock::test;

namespace {

const char* const info = "host=h\npid=1\nlabel=\nsince=5\nlease=30000\nauto=1";

struct Told {
  std::string word, fence, time;
  std::int64_t ms = 0;
};

Told told_in(const Words& messages)
{
  Told told;
  REQUIRE(messages.size() == 1);
  std::istringstream(messages.front()) >> told.word >> told.fence >> told.time >> told.ms;
  return told;
}

ChannelListener listen_as(const ScriptedLock& lock, const std::string& owner)
{
  return {lock.server, "rlock:owner:{k}:" + owner};
}

// One holder, "a", and behind it a waiter, "w".
void queue_up(const ScriptedLock& lock, const LockKind& kind)
{
  const LockKind first = std::holds_alternative<Reader>(kind) ? LockKind(Writer{}) : kind;
  const Script& acquire = scripts_of(kind).acquire;
  CHECK(word(lock.acquire_as(first, "a")) == "granted");
  CHECK(word(lock.eval_as(kind, acquire, "w", {"w", "30000", info, "wait", "0", "0"})) == "busy");
}

void release_first(const ScriptedLock& lock, const LockKind& kind)
{
  lock.release_as(std::holds_alternative<Reader>(kind) ? LockKind(Writer{}) : kind, "a");
}

const std::vector<LockKind> modes{Plain{}, StringLock{}, Writer{}, Reader{}, Permits{1}};

}  // namespace

EACH_MODE_CASE("hand-over script: the message has the fencing number, the server's time and the ms to confirm")
{
  const ScriptedLock lock(kind);
  ChannelListener waiter = listen_as(lock, "w");
  queue_up(lock, kind);
  const auto before = as_texts(lock.server.command({"TIME"}));
  release_first(lock, kind);
  const Told told = told_in(waiter.messages());
  CHECK(told.word == "yours");
  CHECK(told.fence == as_text(lock.server.command({"HGET", "rlock:holder:{k}", "fence:w"})));
  CHECK(told.time.substr(0, 7) == before.front().substr(0, 7));  // seconds, to the thousand
  CHECK(told.time.size() == before.front().size() + 6);
  CHECK(told.ms == 2000);
  const std::string record = as_text(lock.server.command({"HGET", "rlock:holder:{k}", "w"}));
  CHECK(has(record, "\nsince=" + told.time.substr(0, 7)));  // the hold, and not the wait
  CHECK(has(record, "\nlease=30000\nauto=1"));
}

SCRIPT_CASE("hand-over script: the last fencing number may be ahead of the server's clock, and the time is the clock's")
{
  ChannelListener waiter = listen_as(lock, "w");
  queue_up(lock, Plain{});
  lock.server.command({"SET", "redisson_lock_token:{k}", "4000000000000000"});
  release_first(lock, Plain{});
  const Told told = told_in(waiter.messages());
  CHECK(told.fence == "4000000000000001");
  CHECK(told.time < "4");
}

EACH_MODE_CASE("hand-over script: no message comes from a hand-over that fails half way")
{
  const ScriptedLock lock(kind);
  ChannelListener waiter = listen_as(lock, "w");
  queue_up(lock, kind);
  lock.server.command({"SET", "rlock:events:{k}", "no list"});
  release_first(lock, kind);
  CHECK(waiter.messages() == Words{});
}

TEST_CASE("hand-over script: the next waiter is told whether the hold that ended was short")
{
  struct Row {
    const char* granted;  // in us
    const char* message;
  };
  for (const LockKind& kind : {LockKind(Plain{}), LockKind(StringLock{}), LockKind(Writer{}), LockKind(Permits{1})}) {
    CAPTURE(kind_of(kind).with_article);
    for (const Row& row : {Row{"9000000000000000", "claim 2000 quick"}, Row{"1790000000000000", "claim 2000"},
                           Row{"no number", "claim 2000"}}) {
      const ScriptedLock lock(kind);
      ChannelListener first = listen_as(lock, "w");
      ChannelListener next = listen_as(lock, "n");
      queue_up(lock, kind);
      CHECK(word(lock.eval_as(kind, scripts_of(kind).acquire, "n", {"n", "30000", info, "wait", "0", "0"})) == "busy");
      lock.server.command({"HSET", "rlock:holder:{k}", "fence:a", row.granted});
      release_first(lock, kind);
      CHECK(first.received() == Words{"yours"});
      CHECK(next.messages() == Words{row.message});
    }
  }
}

SCRIPT_CASE("hand-over script: the first renewal after it tells the next waiter when the lease ends")
{
  ChannelListener first = listen_as(lock, "w");
  ChannelListener next = listen_as(lock, "n");
  queue_up(lock, Plain{});
  lock.wait("n");
  lock.release("a");
  CHECK(next.received() == Words{"claim 2000"});
  const Script& renew = scripts_of(Plain{}).renew;
  CHECK(word(lock.eval(renew, "w", {"30000", "", "confirm"})) == "kept");
  CHECK(next.messages() == Words{"next 30000"});
  CHECK(word(lock.eval(renew, "w", {"40000", "", ""})) == "kept");
  CHECK(next.messages() == Words{});
}
