// SPDX-License-Identifier: Apache-2.0
// The nested holds of a lock, on a real server, for every kind.
#include "lua/kinds.h"

using namespace rlock::test;

TEST_EACH_KIND("a nested hold: renewed while it is there, lost once it is released, whatever else its owner has")
{
  lock.acquire("a");
  lock.acquire("a", "inner");
  lock.acquire("a", "innermost");
  for (const char* hold : {"a", "inner", "innermost"}) {
    CHECK(word(lock.renew_hold("a", hold)) == "kept");
  }
  for (const char* hold : {"a", "innermost"}) {
    CAPTURE(hold);
    CHECK(word(lock.release("a", hold)) == "still_held");
    const std::string before = as_text(lock.server.command({"DUMP", "k"}));
    const auto events = as_int(lock.server.command({"LLEN", "rlock:events:{k}"}));
    const Reply lost = lock.renew_hold("a", hold);
    CHECK(word(lost) == "lost");
    CHECK(lost.elements.at(1).text == "released");
    CHECK(as_text(lock.server.command({"DUMP", "k"})) == before);
    CHECK(as_int(lock.server.command({"LLEN", "rlock:events:{k}"})) == events);  // no loss was logged
  }
  CHECK(word(lock.renew_hold("a", "inner")) == "kept");
  CHECK(word(lock.renew("a")) == "kept");  // any hold
  CHECK(word(lock.renew_hold("a", "never was")) == "lost");
  CHECK(word(lock.release("a", "inner")) == "released");
  CHECK(lock.renew_hold("a", "inner").elements.at(1).text == "none");
}

TEST_EACH_KIND("a nested hold: where the record was lost it is believed, also when others write it anew")
{
  lock.acquire("a");
  lock.acquire("a", "inner");
  lock.server.command({"DEL", "rlock:holder:{k}"});
  for (const char* hold : {"a", "inner"}) {
    CHECK(word(lock.renew_hold("a", hold)) == "kept");
  }
  CHECK(word(lock.acquire("a", "innermost")) == "granted");
  lock.acquire("b");  // beside it, if the kind admits it
  for (const char* hold : {"a", "inner", "innermost"}) {
    CAPTURE(hold);
    CHECK(word(lock.renew_hold("a", hold)) == "kept");
  }
}

TEST_EACH_KIND("a nested hold: --min-hold is kept until the last release, and the longest counts")
{
  lock.acquire("a", "a", 1000);
  for (const char* hold : {"inner", "innermost", "last"}) {
    lock.acquire("a", hold, 1000);
  }
  CHECK(word(lock.release("a", "innermost", 20'000)) == "still_held");
  CHECK(word(lock.release("a", "innermost", 30'000)) == "still_held");  // a request that is sent twice
  CHECK(word(lock.release("a", "last", 5'000)) == "still_held");
  CHECK(lock.inspect().elements.at(2).integer <= 1000);  // until then it lasts as long as the remaining holds asked for
  CHECK(word(lock.release("a", "inner")) == "still_held");
  CHECK(word(lock.release("a", "a", 500)) == "released");
  CHECK(lock.inspect().elements.at(2).integer > 15'000);
  CHECK(lock.inspect().elements.at(2).integer <= 20'000);
  CHECK(lock.pttl("rlock:holder:{k}") > 15'000);
  CHECK(word(lock.take_away("a")) == "broken");
  CHECK(lock.exists("rlock:holder:{k}") == 0);
}

TEST_EACH_KIND("a nested hold: --min-hold of the inner one is kept after an outer one that has none")
{
  lock.acquire("a", "a", 10'000);
  lock.acquire("a", "inner", 10'000);
  CHECK(word(lock.release("a", "inner", 30'000)) == "still_held");
  CHECK(word(lock.release("a", "a")) == "released");
  CHECK(lock.inspect().elements.at(2).integer > 20'000);
}

TEST_EACH_KIND("a nested hold: a wish to stay taken leaves nothing for ever, nor outlives its time")
{
  lock.acquire("a");
  lock.acquire("a", "inner");
  lock.server.command({"DEL", "rlock:holder:{k}"});
  lock.acquire("a", "innermost");
  CHECK(word(lock.release("a", "innermost", 20)) == "still_held");
  const auto lasting = lock.lasting();
  CHECK(std::find(lasting.begin(), lasting.end(), "rlock:holder:{k}") == lasting.end());
  lock.server.command({"DEL", "rlock:holder:{k}", "k", "{k}:timeout"});

  lock.acquire("b");
  lock.acquire("b", "inner");
  CHECK(word(lock.release("b", "inner", 20)) == "still_held");
  const auto later = std::chrono::steady_clock::now() + std::chrono::milliseconds(25);
  wait_until([&] { return std::chrono::steady_clock::now() > later; }, "its time is over");
  CHECK(word(lock.release("b")) == "released");
  CHECK(lock.holders().empty());
}
