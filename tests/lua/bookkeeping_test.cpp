// SPDX-License-Identifier: Apache-2.0
// The records beside a lock may be lost, and belong to one lock alone.
#include "lua/kinds.h"

using namespace rlock::test;

namespace {

constexpr const char* records = "rlock:holder:{k}";
constexpr const char* counter = "redisson_lock_token:{k}";

Words owners(const ScriptedLock& lock)
{
  Words found;
  for (const HolderRow& holder : lock.holders()) {
    found.push_back(holder.owner);
  }
  return found;
}

std::string fence(const Reply& granted) { return granted.elements.at(1).text; }

}  // namespace

TEST_CASE("bookkeeping: a holder whose record was lost is released although another holder has a record")
{
  for (const LockKind& kind : {LockKind(Reader{}), LockKind(Permits{3})}) {
    CAPTURE(kind.index());
    const ScriptedLock lock(kind);
    lock.acquire("a");
    lock.server.command({"DEL", records});
    lock.acquire("b");
    CHECK(word(lock.release("a")) == "released");
    CHECK(owners(lock) == Words{"b"});
    CHECK(word(lock.release("a")) == "released");
    CHECK(word(lock.release("b")) == "released");
    CHECK(owners(lock) == Words{});
  }
}

TEST_CASE("bookkeeping: a lost record is no reason to keep the lock, whichever hold goes first")
{
  for (const auto& each : kinds) {
    const LockKind& kind = each.kind;
    for (const bool is_made_again : {false, true}) {
      for (const Words& order : {Words{"a", "inner"}, Words{"inner", "a"}}) {
        CAPTURE(kind.index());
        CAPTURE(is_made_again);
        CAPTURE(order.front());
        const ScriptedLock lock(kind);
        lock.acquire("a");
        if (!is_made_again) {
          lock.acquire("a", "inner");
        }
        lock.server.command({"DEL", records});
        if (is_made_again) {
          lock.acquire("a", "inner", 30'000, "again");
        }
        const std::string first = word(lock.release("a", order[0]));
        CHECK(word(lock.release("a", order[0])) == first);
        lock.release("a", order[1]);
        CHECK(owners(lock) == Words{});
      }
    }
  }
}

TEST_EACH_KIND("bookkeeping: an acquire that is sent again after the record was lost makes a whole one")
{
  lock.acquire("a");
  lock.server.command({"DEL", records});
  CHECK(word(lock.acquire("a")) == "granted");
  CHECK(word(lock.renew_hold("a", "a")) == "kept");
  CHECK(word(lock.release("a")) == "released");
  CHECK(owners(lock) == Words{});
}

TEST_CASE("bookkeeping: a lock and the one of the same name in braces share no waiters and no records")
{
  for (const LockKind& kind : {LockKind(Plain{}), LockKind(Writer{}), LockKind(StringLock{})}) {
    CAPTURE(kind.index());
    ScriptedLock lock(kind);
    const auto in = [&](const char* name) -> ScriptedLock& {
      lock.name = name;
      return lock;
    };
    CHECK(word(in("stock").acquire("a")) == "granted");
    CHECK(word(in("{stock}").acquire("b")) == "granted");
    CHECK(word(in("stock").wait("w")) == "busy");
    CHECK(in("stock").inspect().elements.at(6).elements.size() == 5);
    CHECK(in("{stock}").inspect().elements.at(6).elements.empty());
    CHECK(word(in("{stock}").release("b")) == "released");
    CHECK(owners(in("{stock}")) == Words{});
    CHECK(owners(in("stock")) == Words{"a"});
    CHECK(in("stock").holders().at(0).info == "host=h\npid=1");
    CHECK(word(in("stock").release("a")) == "released");
    CHECK(owners(in("stock")) == Words{"w"});
  }
}

TEST_EACH_KIND("bookkeeping: a nested hold has its holder's number when the counter is gone")
{
  const std::string number = fence(lock.acquire("a"));
  lock.server.command({"DEL", counter});
  CHECK(fence(lock.acquire("a")) == number);
  CHECK(fence(lock.acquire("a", "inner", 30'000, "again")) == number);
  CHECK(fence(lock.inspect()) == number);
}

TEST_EACH_KIND("bookkeeping: a renewal keeps the counter, which a job of more than its 30 days needs")
{
  lock.acquire("a");
  lock.server.command({"PEXPIRE", counter, "20000"});
  CHECK(word(lock.renew("a", 60'000)) == "kept");
  CHECK(lock.pttl(counter) > 29LL * 24 * 3600 * 1000);
}
