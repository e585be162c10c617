// SPDX-License-Identifier: Apache-2.0
// The steps of force-unlock, for every kind of lock.
#include "lua/kinds.h"

using namespace rlock::test;

namespace {

// The holders that inspect calls revoked.
Words revoked(const ScriptedLock& lock)
{
  Words found;
  for (const HolderRow& holder : lock.holders()) {
    if (holder.is_revoked) {
      found.push_back(holder.owner);
    }
  }
  return found;
}

}  // namespace

TEST_EACH_KIND("revoke: renewals are refused, questions are not, and the owner may release")
{
  REQUIRE(word(lock.acquire("a", "a", 20'000)) == "granted");
  CHECK(revoked(lock) == Words{});
  CHECK(word(lock.force("ask", "a")) == "held");
  CHECK(revoked(lock) == Words{});
  CHECK(word(lock.force("revoke", "a")) == "held");
  CHECK(word(lock.force("revoke", "a")) == "held");
  CHECK(revoked(lock) == Words{"a"});
  const Reply refused = lock.renew("a", 60'000);
  CHECK(word(refused) == "lost");
  CHECK(refused.elements.at(1).text == "revoked");
  CHECK(refused.elements.at(4).text == "eve@h");
  CHECK(lock.inspect().elements.at(2).integer <= 20'000);
  CHECK(word(lock.renew("a", 0)) == "kept");
  const Reply nested = lock.acquire("a", "inner", 60'000, "again");
  CHECK(word(nested) == "lost");
  CHECK(nested.elements.at(1).text == "revoked");
  CHECK(word(lock.release("a")) == "released");
  CHECK(lock.exists("rlock:force:{k}") == 0);
  CHECK(word(lock.force("revoke", "a")) == "free");
}

TEST_EACH_KIND("revoke: a late copy of the request that was granted does not free the lock under which a job runs")
{
  REQUIRE(word(lock.acquire("a", "a", 20'000)) == "granted");
  REQUIRE(word(lock.force("revoke", "a")) == "held");
  for (const char* mode : {"wait", "try"}) {
    CAPTURE(mode);
    CHECK(word(lock.acquire("a", "a", 20'000, mode)) == "busy");
    CHECK(revoked(lock) == Words{"a"});
    CHECK(lock.exists("rlock:queue:{k}") == 0);
  }
  CHECK(word(lock.renew("a", 60'000)) == "lost");
}

// A waiter that was stopped confirms the hand-over too late, and is granted the lock later.
TEST_EACH_KIND("force: a request about a hold that has expired does not concern the next hold of that owner")
{
  for (const char* step : {"ask", "revoke"}) {
    CAPTURE(step);
    REQUIRE(word(lock.acquire("a", "a", 100)) == "granted");
    REQUIRE(word(lock.force(step, "a")) == "held");
    wait_for_expiry(lock);
    REQUIRE(word(lock.wait("a", "1795926781549000")) == "granted");
    CHECK(revoked(lock) == Words{});
    const Reply renewed = lock.renew("a");
    CHECK(word(renewed) == "kept");
    CHECK(renewed.elements.at(1).kind == Reply::Kind::nil);
    REQUIRE(word(lock.release("a")) == "released");
  }
}

TEST_EACH_KIND("revoke: a mark that is lost does no harm")
{
  REQUIRE(word(lock.acquire("a")) == "granted");
  lock.force("revoke", "a");
  lock.server.command({"DEL", "rlock:force:{k}"});
  CHECK(word(lock.renew("a")) == "kept");
  lock.force("revoke", "a");
  CHECK(word(lock.renew("a")) == "lost");
}

TEST_CASE("revoke: concerns one owner, not those that share the lock with it")
{
  for (const Kind& kind : {kinds[1], kinds[3]}) {
    CAPTURE(shown(kind));
    const ScriptedLock lock(kind.kind);
    REQUIRE(word(lock.acquire("a")) == "granted");
    REQUIRE(word(lock.acquire("b")) == "granted");
    lock.force("revoke", "a");
    CHECK(word(lock.renew("a")) == "lost");
    CHECK(word(lock.renew("b")) == "kept");
    CHECK(revoked(lock) == Words{"a"});
  }
}

TEST_CASE("revoke: a lock that has lost its ttl gets the lease that its owner counts on, also without its record")
{
  for (const bool has_record : {true, false}) {
    CAPTURE(has_record);
    const ScriptedLock lock(Plain{});
    REQUIRE(word(lock.eval(scripts_of(Plain{}).acquire, "a",
                           {"a", "20000", "host=h\npid=1\nlease=20000\nauto=1", "try", "0", "0"})) == "granted");
    lock.server.command({"PERSIST", "k"});
    if (!has_record) {
      lock.server.command({"DEL", "rlock:holder:{k}"});
    }
    CHECK(word(lock.force("look", "a")) == "held");
    CHECK(lock.pttl("k") == -1);
    CHECK(word(lock.force("revoke", "a")) == "held");
    CHECK(lock.pttl("k") > 10'000);
    CHECK(lock.pttl("k") <= 20'000);
  }
}

TEST_EACH_KIND("force: an owner that stops its job says so with its renewals")
{
  REQUIRE(word(lock.acquire("a")) == "granted");
  CHECK(word(lock.ask("a")) == "held");
  CHECK(lock.force("look", "a").elements.at(6).integer == -1);
  lock.renew("a");
  CHECK(lock.force("look", "a").elements.at(6).integer == -1);
  lock.eval(scripts_of(kind.kind).renew, "a", {"30000", "", "stopping"});
  const auto silent = lock.force("look", "a").elements.at(6).integer;
  CHECK(silent >= 0);
  CHECK(silent < 20'000);
  CHECK(lock.force("look", "a").elements.at(7).integer == 1);
}

TEST_CASE("force: an owner without a record is foreign, unless something else tells that it is an rlock")
{
  const ScriptedLock lock(Plain{});
  const std::string owner = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
  lock.server.command({"HSET", "k", owner, "1"});
  CHECK(lock.force("look", owner).elements.at(7).integer == 0);
  {
    const ChannelListener listener = subscribe_as(lock, owner);
    CHECK(lock.force("look", owner).elements.at(7).integer == 1);
  }
  lock.server.command({"DEL", "k"});
  REQUIRE(word(lock.acquire("a")) == "granted");
  lock.server.command({"DEL", "rlock:holder:{k}"});
  CHECK(lock.force("look", "a").elements.at(7).integer == 1);  // by the event log
}

TEST_CASE("force: what --min-hold keeps is broken by each step, unless a hold is left")
{
  for (const Kind& kind : kinds) {
    for (const char* step : {"ask", "look", "revoke", "take"}) {
      CAPTURE(shown(kind));
      CAPTURE(std::string(step));
      const ScriptedLock lock(kind.kind);
      const Words acquire{"a", "20000", "host=h\nlease=20000\nauto=1", "try", "0", "0"};
      REQUIRE(word(lock.eval(scripts_of(kind.kind).acquire, "a", acquire)) == "granted");
      REQUIRE(word(lock.release("a", "a", 20'000)) == "released");
      REQUIRE(word(lock.acquire("a", "inner", 20'000, "again")) == "granted");
      CHECK(word(lock.force("look", "a")) == "held");
      REQUIRE(word(lock.release("a", "inner", 20'000)) == "still_held");  // the hold of the finished job counts
      const Reply broken = lock.force(step, "a");
      CHECK(word(broken) == "broken");
      CHECK(broken.elements.at(4).integer == 1);
      CHECK(word(lock.force("look", "a")) == "free");
    }
  }
}

TEST_CASE("force: nothing is taken from a hash with more fields than a lock has")
{
  const ScriptedLock lock(Plain{});
  lock.server.command({"HSET", "k", "prod", "5", "size", "3"});
  for (const char* step : {"ask", "revoke", "take"}) {
    CHECK(word(lock.force(step, "prod")) == "other");
  }
  CHECK(lock.hash("k").size() == 2);
}

// Of many waiters with --cancel-in-progress the first is named, and the event log has one entry for all of them.
TEST_EACH_KIND("join: the request of another client that the holder has got stands, and the holder is told again")
{
  REQUIRE(word(lock.acquire("a")) == "granted");
  ChannelListener holder = subscribe_as(lock, "a");
  const auto join_as = [&](const std::string& requester) {
    return word(lock.eval(scripts_of(kind.kind).force, "a", {requester, "join", "60000"}));
  };
  CHECK(join_as("first") == "held");
  const auto entries = as_int(lock.server.command({"LLEN", "rlock:events:{k}"}));
  CHECK(join_as("second") == "held");
  CHECK(join_as("first") == "held");
  CHECK(as_int(lock.server.command({"LLEN", "rlock:events:{k}"})) == entries);
  CHECK(lock.renew("a").elements.at(1).text == "first");
  CHECK(holder.received() == Words{"force", "force", "force"});
  CHECK(word(lock.ask("a")) == "held");
  CHECK(lock.renew("a").elements.at(1).text == "eve@h");
}
