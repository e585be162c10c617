// SPDX-License-Identifier: Apache-2.0
// Which grants are published to owners that still believe they hold the lock.
#include "lua/scripted_lock.h"

using namespace rlock::test;

namespace {

const std::vector<LockKind> modes{Plain{}, Reader{}, Writer{}, Permits{2}, StringLock{}};
constexpr const char* channel = "rlock:taken:{k}";

}  // namespace

EACH_MODE_CASE("taken: a grant that finds no holder is told, whatever became of the one before")
{
  for (const Words& gone : {Words{"DEL", "k", "{k}:timeout"}, Words{"FLUSHALL"}}) {
    CAPTURE(kind.index());
    const ScriptedLock lock(kind);
    lock.acquire("a");
    ChannelListener holder(lock.server, channel);
    lock.server.command(gone);
    CHECK(word(lock.acquire("b")) == "granted");
    CHECK(holder.received() == Words{"taken"});
  }
}

EACH_MODE_CASE("taken: hand-overs, nested holds, renewals and those that share it are told to no holder")
{
  const ScriptedLock lock(kind);
  lock.acquire("a");
  lock.acquire("b");  // beside it, if the kind admits it
  const ChannelListener waiter = subscribe_as(lock, "w");
  ChannelListener holder(lock.server, channel);
  lock.acquire("a");
  lock.acquire("a", "inner");
  lock.renew("a");
  CHECK(word(lock.wait("w")) != "lost");
  lock.release("a", "inner");
  lock.release("a");
  lock.release("b");
  lock.wait("w");
  CHECK(holder.received() == Words{});
}

SCRIPT_CASE("taken: a lock that had expired is told by the waiter that finds it")
{
  lock.acquire("a");
  const ChannelListener waiter = subscribe_as(lock, "w");
  lock.wait("w");
  ChannelListener holder(lock.server, channel);
  lock.server.command({"DEL", "k"});
  CHECK(word(lock.wait("w")) == "granted");
  CHECK(holder.received() == Words{"taken"});
}
