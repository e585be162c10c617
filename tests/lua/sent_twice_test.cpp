// SPDX-License-Identifier: Apache-2.0
// A request whose answer was lost is sent again: same answer, same state.
#include "lua/kinds.h"

using namespace rlock::test;

namespace {

const std::vector<LockKind> modes{Plain{}, Reader{}, Writer{}, Permits{1}, StringLock{}};

// Another owner holds the lock in a way that blocks waiters of this mode.
struct HeldByAnother : ScriptedLock {
  explicit HeldByAnother(const LockKind& kind) : ScriptedLock(kind)
  {
    acquire_as(std::holds_alternative<Reader>(kind) ? LockKind(Writer{}) : kind, "holder");
  }
};

std::string everything(const ScriptedLock& lock)
{
  std::string all;
  for (const char* key : {"k", "{k}:timeout", "rlock:holder:{k}"}) {
    const Reply dump = lock.server.command({"DUMP", key});
    all += dump.kind == Reply::Kind::nil ? "-" : dump.text;
  }
  return all;
}

}  // namespace

TEST_EACH_KIND("sent twice: each verb gives the same answer and the same state")
{
  const Reply granted = lock.acquire("a");
  const std::string taken = as_text(lock.server.command({"DUMP", "k"}));
  const Reply again = lock.acquire("a");
  CHECK(again.elements.at(1).text == granted.elements.at(1).text);
  CHECK(again.elements.at(2).integer == 1);
  CHECK(as_text(lock.server.command({"DUMP", "k"})) == taken);
  CHECK(word(lock.renew("a")) == "kept");
  CHECK(word(lock.renew("a")) == "kept");
  CHECK(word(lock.ask("a")) == "held");
  CHECK(word(lock.ask("a")) == "held");
  CHECK(word(lock.release("a")) == "released");
  CHECK(word(lock.release("a")) == "released");
  REQUIRE(word(lock.acquire("b")) == "granted");
  CHECK(word(lock.release("a")) == "released");
  CHECK(lock.holders().size() == 1);
  CHECK(word(lock.take_away("b")) == "broken");
  CHECK(word(lock.take_away("b")) == "free");
  CHECK(word(lock.release("b")) == "lost");
  CHECK(word(lock.release("a")) == "released");  // its answer outlasts the next holder
  CHECK(lock.holders().empty());
}

TEST_EACH_KIND("sent twice: an acquire whose rights need no check, its renewal and its release")
{
  const auto acquire = [&] {
    return lock.eval(scripts_of(kind.kind).acquire, "a",
                     {"a", "30000", "host=h\npid=1", "wait", "0", "0", "unchecked"});
  };
  const auto dump = [&] { return as_text(lock.server.command({"DUMP", "k"})); };
  const Reply granted = acquire();
  CHECK(word(granted) == "granted");
  const std::string taken = dump();
  CHECK(show(acquire()) == show(granted));
  CHECK(dump() == taken);
  for (int i = 0; i < 2; ++i) {
    CHECK(word(lock.renew("a", 40'000)) == "kept");
    CHECK(dump() == taken);
    CHECK(lock.holders().size() == 1);
  }
  CHECK(word(lock.release("a")) == "released");
  CHECK(word(lock.release("a")) == "released");
  CHECK(lock.holders().empty());
}

EACH_MODE_CASE("sent twice: a release that leaves the lock taken for --min-hold")
{
  const ScriptedLock lock(kind);
  lock.acquire("a");
  CHECK(word(lock.release("a", "a", 4000)) == "released");
  const std::string before = everything(lock);
  CHECK(word(lock.release("a", "a", 4000)) == "released");
  CHECK(everything(lock) == before);
}

TEST_CASE("sent twice: the releases of nested holds, in any order, with --min-hold or without")
{
  using namespace std::string_literals;
  for (const LockKind& kind : modes) {
    for (const int keep : {0, 4000}) {
      for (const Words& order : {Words{"a", "inner"}, Words{"inner", "a"}}) {
        CAPTURE(kind.index());
        CAPTURE(keep);
        CAPTURE(order.front());
        const ScriptedLock lock(kind);
        lock.acquire("a");
        lock.acquire("a", "inner");
        const auto release = [&](const std::string& hold) {  // with what a run ended with
          return lock.eval(scripts_of(kind).release, "a", {hold, "0", std::to_string(keep), "0", "\0exit\0000"s, ""});
        };
        const Reply first = release(order[0]);
        CHECK(word(first) == "still_held");
        CHECK(show(release(order[0])) == show(first));
        CHECK(word(release(order[1])) == "released");
        CHECK(word(release(order[1])) == "released");
        CHECK(show(release(order[0])) == show(first));
      }
    }
  }
}

EACH_MODE_CASE("sent twice: a release that hands the lock over")
{
  const ScriptedLock lock(kind);
  lock.acquire_as(std::holds_alternative<Reader>(kind) ? LockKind(Writer{}) : kind, "a");
  const ChannelListener waiter = subscribe_as(lock, "b");
  CHECK(word(lock.wait("b")) == "busy");
  const Reply first = lock.release("a");
  CHECK(first.elements.at(1).integer == 1);
  const Reply second = lock.release("a");
  CHECK(word(second) == "released");
  CHECK(second.elements.at(1).integer == 1);
  CHECK(second.elements.at(2).integer == 1);  // an earlier request did it
  CHECK(word(lock.wait("b")) == "granted");
}

EACH_MODE_CASE("sent twice: leaving the queue")
{
  const HeldByAnother lock(kind);
  const ChannelListener last = subscribe_as(lock, "d");
  for (const std::string waiter : {"b", "c", "d"}) {
    CHECK(word(lock.wait(waiter)) == "busy");
  }
  CHECK(word(lock.release("c")) == "left");
  CHECK(word(lock.release("b")) == "left");
  CHECK(word(lock.release("c")) == "left");
  CHECK(word(lock.release("b")) == "left");
  CHECK(word(lock.release("never came")) == "lost");
  const auto waiting = lock.inspect().elements.at(6).elements;
  REQUIRE(waiting.size() == 5);
  CHECK(waiting[0].text == "d");
}

EACH_MODE_CASE("sent twice: that it left the queue once does not hide that an owner lost the lock later")
{
  const HeldByAnother lock(kind);
  CHECK(word(lock.wait("b")) == "busy");
  CHECK(word(lock.release("b")) == "left");
  lock.server.command({"DEL", "k", "{k}:timeout"});
  CHECK(word(lock.acquire("b")) == "granted");
  lock.server.command({"DEL", "k", "{k}:timeout"});
  CHECK(word(lock.release("b")) == "lost");
  CHECK(word(lock.release("b")) == "lost");
}

EACH_MODE_CASE("sent twice: an acquire that joins the queue has the same ticket and place")
{
  const HeldByAnother lock(kind);
  const Reply first = lock.wait("b");
  CHECK(word(lock.wait("c")) == "busy");
  const Reply again = lock.wait("b");
  CHECK(again.elements.at(5).integer == first.elements.at(5).integer);
  CHECK(again.elements.at(6).text == first.elements.at(6).text);
  const std::string stored = as_text(lock.server.command({"ZSCORE", LockKeys(*LockName::parse("k"), kind).queue, "b"}));
  CHECK(stored == first.elements.at(6).text);
}
