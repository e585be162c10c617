// SPDX-License-Identifier: Apache-2.0
// run --latest in the scripts: a newer waiter takes the place of the one before it, whatever comes late or twice.
#include "lua/kinds.h"

using namespace rlock::test;

namespace {

// A lock that "holder" has, with waiters of which all or some wait with --latest.
struct LatestFixture : ScriptedLock {
  explicit LatestFixture(const LockKind& of_kind = Plain{}, RedisOptions options = {})
      : ScriptedLock(of_kind, std::move(options)), kind(of_kind)
  {
    acquire_as(std::holds_alternative<Reader>(kind)    ? LockKind(Writer{})
               : std::holds_alternative<Permits>(kind) ? LockKind(Permits{1})
                                                       : kind,
               "holder");
  }

  // "busy PLACE", "granted", or "replaced by HOST".
  std::string latest(const std::string& owner, const std::string& ticket = "0")
  {
    const Reply reply = eval_as(asked(), scripts_of(kind).acquire, owner,
                                {owner, "30000", "host=" + owner + "\npid=1\nlatest=1\nauto=1", "latest", ticket, "0"});
    const std::string what = word(reply);
    if (what == "busy") {
      tickets[owner] = reply.elements.at(6).text;
      return "busy " + std::to_string(reply.elements.at(5).integer);
    }
    const std::string info = what == "replaced" ? reply.elements.at(1).text : "";
    return what + (info.empty() ? "" : " by " + info.substr(5, info.find('\n') - 5));
  }
  std::string again(const std::string& owner) { return latest(owner, tickets.at(owner)); }
  std::string plain(const std::string& owner) { return word(acquire_as(asked(), owner, "wait")); }

  [[nodiscard]] Words line() const
  {
    return as_texts(server.command({"ZRANGE", LockKeys(*LockName::parse(name), kind).queue, "0", "-1"}));
  }
  void forget_queue() const
  {
    const LockKeys keys(*LockName::parse(name), kind);
    server.command({"DEL", keys.queue, keys.waiters});
  }
  [[nodiscard]] LockKind asked() const { return std::holds_alternative<Permits>(kind) ? LockKind(Permits{1}) : kind; }

  const LockKind kind;
  std::map<std::string, std::string> tickets;
};

}  // namespace

#define LATEST_CASE(title) CASE_WITH(LatestFixture, lock, title)

EACH_KIND_CASE("latest script: of those that wait with it only the newest stays, at the end of the line")
{
  LatestFixture lock(kind.kind);
  ChannelListener first = subscribe_as(lock, "a");
  const ChannelListener between = subscribe_as(lock, "p");
  CHECK(lock.latest("a") == "busy 0");
  CHECK(lock.plain("p") == "busy");
  CHECK(lock.latest("b") == "busy 1");
  CHECK(lock.line() == Words{"p", "b"});
  CHECK(first.received() == Words{"look 0"});
  CHECK(lock.again("a") == "replaced by b");
  CHECK(lock.again("b") == "busy 1");
  CHECK(lock.latest("c") == "busy 1");
  CHECK(lock.line() == Words{"p", "c"});
  CHECK(lock.again("a") == "replaced by c");
  CHECK(lock.lasting() == (std::holds_alternative<Permits>(kind.kind) ? Words{"k", "{k}:timeout"} : Words{}));
}

EACH_KIND_CASE("latest script: a newer waiter that does not listen yet stays in line, whoever was in front of it")
{
  LatestFixture lock(kind.kind);
  CHECK(lock.latest("a") == "busy 0");
  CHECK(lock.plain("dead") == "busy");
  CHECK(lock.latest("b") == "busy 0");
  CHECK(lock.line() == Words{"b"});
}

LATEST_CASE("latest script: each request may be sent twice")
{
  const auto state = [&] { return show(lock.server.command({"ZRANGE", "rlock:queue:{k}", "0", "-1", "WITHSCORES"})); };
  CHECK(lock.latest("a") == "busy 0");
  CHECK(lock.latest("a") == "busy 0");
  CHECK(lock.latest("b") == "busy 0");
  const std::string before = state();
  CHECK(lock.latest("b") == "busy 0");
  CHECK(lock.again("b") == "busy 0");
  CHECK(lock.again("a") == "replaced by b");
  CHECK(lock.again("a") == "replaced by b");
  CHECK(state() == before);
}

LATEST_CASE("latest script: a first request that comes after its waiter was replaced, or left, replaces no one")
{
  lock.latest("a"), lock.latest("b");
  CHECK(lock.latest("a") == "replaced by b");
  CHECK(lock.line() == Words{"b"});
  CHECK(word(lock.release_as(lock.kind, "b")) == "left");
  lock.latest("c");
  CHECK(lock.latest("b") == "replaced by c");
  CHECK(lock.line() == Words{"c"});
}

LATEST_CASE("latest script: the waiter behind a replaced one learns that it is first")
{
  lock.latest("a");
  ChannelListener behind = subscribe_as(lock, "p");
  lock.plain("p");
  lock.latest("b");
  const Words heard = behind.received();
  CHECK(std::any_of(heard.begin(), heard.end(), [](const std::string& text) { return text.starts_with("next"); }));
}

LATEST_CASE("latest script: a waiter that has just been handed the lock is in progress, and not replaced")
{
  ChannelListener handed = subscribe_as(lock, "a");
  lock.latest("a");
  lock.release_as(lock.kind, "holder");
  CHECK(handed.received().back() == "yours");
  CHECK(lock.latest("b") == "busy 0");
  CHECK(lock.again("a") == "granted");
  CHECK(lock.again("b") == "busy 0");
}

// It was stopped: its claim ended, the newer one had the lock, and nobody has asked for so long that the queue is forgotten.
TEST_CASE("latest script: one that was handed the lock, slept and comes back does not run after a newer one")
{
  for (const bool is_remembered : {true, false}) {
    CAPTURE(is_remembered);
    LatestFixture lock;
    const ChannelListener handed = subscribe_as(lock, "a");
    lock.latest("a");
    lock.release_as(lock.kind, "holder");
    const ChannelListener newer = subscribe_as(lock, "b");
    lock.latest("b");
    lock.server.command({"DEL", "k"});  // the claim ends
    CHECK(lock.again("b") == "granted");
    lock.release_as(lock.kind, "b");
    if (!is_remembered) {
      lock.forget_queue();
    }
    CHECK(lock.again("a") == "replaced by b");
    CHECK(lock.exists("k") == 0);
  }
}

LATEST_CASE("latest script: a replaced waiter that missed the message learns it when the queue is gone")
{
  lock.latest("a"), lock.latest("b");
  lock.forget_queue();
  CHECK(lock.again("a") == "replaced by b");
  CHECK(lock.line() == Words{});
  CHECK(lock.again("b") == "busy 0");
}

TEST_CASE("latest script: after the loss of all notes the newer ticket wins, whichever waiter asks first")
{
  for (const bool older_first : {true, false}) {
    LatestFixture lock;
    lock.latest("a"), lock.latest("b");
    lock.server.command({"DEL", "rlock:queue:{k}", "rlock:waiters:{k}", "rlock:events:{k}"});
    lock.again(older_first ? "a" : "b");
    lock.again(older_first ? "b" : "a");
    CHECK(lock.line() == Words{"b"});
    CHECK(lock.again("a") == "replaced by b");
  }
}

LATEST_CASE("latest script: a free lock is granted, and an older run of the log does not hinder a new one")
{
  lock.release_as(lock.kind, "holder");
  CHECK(lock.latest("a") == "granted");
  CHECK(lock.latest("a") == "granted");
  lock.release_as(lock.kind, "a");
  CHECK(lock.latest("b") == "granted");
  CHECK(lock.latest("c") == "busy 0");
  const ChannelListener waiter = subscribe_as(lock, "c");
  lock.release_as(lock.kind, "b");
  CHECK(lock.again("c") == "granted");
}

TEST_CASE("latest script: a clock that is set back does not make a new waiter the older one")
{
  LatestFixture lock(Plain{}, {.alone = true, .own_clock = true});
  lock.latest("a");
  lock.server.step_clock(Millis(-3'600'000));
  CHECK(lock.latest("b") == "busy 0");
  CHECK(lock.again("b") == "busy 0");
  CHECK(lock.again("a") == "replaced by b");
}

EACH_KIND_CASE("latest script: one that was stopped in line does not run after a newer one that found the lock free")
{
  LatestFixture lock(kind.kind);
  CHECK(lock.latest("older", "1000") == "busy 0");  // it came long ago and hears nothing, so it is skipped
  REQUIRE(word(lock.take_away("holder")) == "broken");
  CHECK(lock.latest("newer") == "granted");
  CHECK(lock.again("older") == "replaced by newer");
}

LATEST_CASE("latest script: one whose grant was not answered, and ran out, does not run after a newer one")
{
  REQUIRE(word(lock.take_away("holder")) == "broken");
  CHECK(lock.latest("older") == "granted");
  lock.server.command({"DEL", lock.name});
  CHECK(lock.latest("newer") == "granted");
  CHECK(lock.latest("older") == "replaced by newer");
  REQUIRE(word(lock.take_away("newer")) == "broken");
  CHECK(lock.latest("newest") == "granted");
}

LATEST_CASE("latest script: a first request that comes after its client gave up replaces no one")
{
  CHECK(lock.latest("a") == "busy 0");
  using namespace std::string_literals;
  const Reply gone = lock.eval(scripts_of(Plain{}).release, "late", {"late", "0", "0", "0", "\0outcome\0unused"s, ""});
  CHECK(word(gone) == "lost");
  CHECK(lock.latest("late") == "replaced by a");
  CHECK(lock.line() == Words{"a"});
}
