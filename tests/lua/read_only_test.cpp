// SPDX-License-Identifier: Apache-2.0
// A request that only reads changes nothing on the server, not even a missing ttl.
#include "lua/kinds.h"

using namespace rlock::test;

namespace {

std::string timeout_of(const std::string& reader) { return "{k}:" + reader + ":rwlock_timeout:1"; }

// PERSIST on all keys of the lock.
void take_ttls_away(const ScriptedLock& lock)
{
  for (const std::string& key : {std::string("k"), timeout_of("a"), std::string("{k}:timeout")}) {
    lock.server.command({"PERSIST", key});
  }
}

// All keys of the lock itself, with their contents.
Words contents(const ScriptedLock& lock)
{
  Words all;
  for (const std::string& key :
       {std::string("k"), timeout_of("a"), std::string("{k}:timeout"), std::string("rlock:holder:{k}")}) {
    const Reply dump = lock.server.command({"DUMP", key});
    all.push_back(key + (dump.kind == Reply::Kind::nil ? " is missing" : " " + dump.text));
  }
  return all;
}

}  // namespace

TEST_EACH_KIND("read only: check, a wrong token, status and a request to release change no lock that has lost its ttl")
{
  REQUIRE(word(lock.acquire("a")) == "granted");
  take_ttls_away(lock);
  const Words before = contents(lock);
  const Words lasting = lock.lasting();
  CHECK(word(lock.renew("a", 0)) == "kept");
  CHECK(word(lock.renew("b", 0)) == "lost");
  CHECK(word(lock.release("b")) == "lost");
  lock.inspect();
  CHECK(word(lock.ask("b")) == "changed");
  CHECK(word(lock.ask("a")) == "held");
  CHECK(word(lock.renew("a", 0)) == "kept");
  CHECK(contents(lock) == before);
  CHECK(lock.lasting() == lasting);
}

TEST_EACH_KIND("read only: a lock that is about to expire is not extended or shortened by a question")
{
  REQUIRE(word(lock.acquire("a", "a", 20'000)) == "granted");
  const auto before = lock.inspect().elements.at(2).integer;
  CHECK(word(lock.renew("a", 0)) == "kept");
  lock.ask("a");
  const auto after = lock.inspect().elements.at(2).integer;
  CHECK(after <= before);
  CHECK(after > before - 10'000);
}

TEST_EACH_KIND("read only: a lock that lost its ttl gets one again from its owner's renewal")
{
  REQUIRE(word(lock.acquire("a")) == "granted");
  take_ttls_away(lock);
  CHECK(word(lock.renew("a", 20'000)) == "kept");
  const bool has_no_ttl_by_design = std::holds_alternative<Permits>(kind.kind);
  if (!has_no_ttl_by_design) {
    CHECK(lock.lasting().empty());
    CHECK(lock.pttl("k") > 10'000);
  }
  CHECK(word(lock.renew("a", 20'000)) == "kept");
  for (const std::string& event : as_texts(lock.server.command({"LRANGE", "rlock:events:{k}", "0", "-1"}))) {
    CHECK_FALSE(has(event, "renewed_late"));
  }
  CHECK(word(lock.release("a")) == "released");
}

TEST_CASE("renewal: a reader whose hold lost its ttl keeps the lock when another reader leaves")
{
  const ScriptedLock lock(Reader{});
  REQUIRE(word(lock.acquire("a")) == "granted");
  REQUIRE(word(lock.acquire("b")) == "granted");
  take_ttls_away(lock);
  CHECK(word(lock.release("b")) == "released");
  CHECK(word(lock.renew("a", 0)) == "kept");
  CHECK(word(lock.release("a", "a", 5000)) == "released");  // --min-hold
  CHECK(lock.lasting().empty());
  CHECK(lock.exists("k") == 1);
}
