// SPDX-License-Identifier: Apache-2.0
// On what terms a caller joins the queue, in the scripts (calls::JoinTerms).
#include "lua/kinds.h"

using namespace rlock::test;

namespace {

// A lock that "holder" has, and its line.
struct LineFixture : ScriptedLock {
  explicit LineFixture(const LockKind& of_kind = Plain{}) : ScriptedLock(of_kind), kind(of_kind)
  {
    acquire_as(std::holds_alternative<Reader>(kind)    ? LockKind(Writer{})
               : std::holds_alternative<Permits>(kind) ? LockKind(Permits{1})
                                                       : kind,
               "holder");
  }

  // "busy PLACE", "full WAITERS" or another word.
  std::string join(const std::string& owner, const Words& terms, const std::string& how = "wait",
                   const std::string& ticket = "0")
  {
    const LockKind asked = std::holds_alternative<Permits>(kind) ? LockKind(Permits{1}) : kind;
    const Words call{owner, "30000", "host=" + owner + "\npid=1\nauto=1", how, ticket, "0", "unchecked"};
    const Reply reply = eval_as(asked, scripts_of(kind).acquire, owner, joined(call, terms));
    const std::string what = word(reply);
    if (what != "busy") {
      return what;
    }
    tickets[owner] = reply.elements.at(6).text;
    return reply.elements.size() > 11 ? "full " + std::to_string(reply.elements.at(11).integer)
                                      : "busy " + std::to_string(reply.elements.at(5).integer);
  }
  [[nodiscard]] LockKeys keys() const { return LockKeys(*LockName::parse(name), kind); }
  [[nodiscard]] Words line() const { return as_texts(server.command({"ZRANGE", keys().queue, "0", "-1"})); }
  // So that a waiter that does not listen counts as dead.
  void let_grace_pass(const std::string& waiter) const
  {
    const double joined_at = std::stod(server.command({"ZSCORE", keys().queue, waiter}).text);
    const double grace_us = std::chrono::duration<double, std::micro>(subscribe_grace).count();
    server.command({"ZADD", keys().queue, std::to_string(joined_at - grace_us), waiter});
  }

  const LockKind kind;
  std::map<std::string, std::string> tickets;
};

}  // namespace

TEST_CASE("line script: no caller joins more waiters than it allows, and the line stays as it is")
{
  for (const Kind& kind : kinds) {
    CAPTURE(shown(kind));
    LineFixture lock(kind.kind);
    CHECK(lock.join("a", {"2"}) == "busy 0");
    CHECK(lock.join("b", {"2"}) == "busy 1");
    CHECK(lock.join("c", {"2"}) == "full 2");
    CHECK(lock.join("d", {"3"}) == "busy 2");
    CHECK(lock.join("c", {"1"}) == "full 3");
    CHECK(lock.join("c", {}, "try") == "busy 3");
    CHECK(lock.line() == Words{"a", "b", "d"});
    CHECK(lock.lasting() == (std::holds_alternative<Permits>(kind.kind) ? Words{"k", "{k}:timeout"} : Words{}));
    CHECK(word(lock.release_as(lock.kind, "b")) == "left");
    CHECK(lock.join("c", {"3"}) == "busy 2");
  }
}

TEST_CASE("line script: a caller that is in line already stays there, also when the queue was lost")
{
  LineFixture lock;
  CHECK(lock.join("a", {"1"}) == "busy 0");
  CHECK(lock.join("a", {"1"}) == "busy 0");  // the answer was lost
  CHECK(lock.join("a", {"1"}, "wait", lock.tickets["a"]) == "busy 0");
  lock.server.command({"DEL", lock.keys().queue, lock.keys().waiters});
  CHECK(lock.join("b", {"1"}) == "busy 0");
  CHECK(lock.join("a", {"1"}, "wait", lock.tickets["a"]) == "busy 0");
  CHECK(lock.line() == Words{"a", "b"});
}

TEST_CASE("line script: freezes and dead waiters do not count, and those that may be away do")
{
  LineFixture lock;
  CHECK(lock.join("freeze", {}, "first") == "busy 0");
  CHECK(lock.join("a", {"1"}) == "busy 1");
  CHECK(lock.join("b", {"1"}) == "full 1");
  lock.let_grace_pass("a");
  CHECK(lock.join("b", {"1", "1"}) == "full 1");  // it is behind the first one, so that it need not listen
  CHECK(lock.join("b", {"1"}) == "busy 2");
  const ChannelListener listening = subscribe_as(lock, "a");
  CHECK(lock.join("c", {"2"}) == "full 2");
}

TEST_CASE("line script: a newer waiter with --latest takes the place of the one before it in a full line")
{
  LineFixture lock;
  CHECK(lock.join("a", {"2"}) == "busy 0");
  CHECK(lock.join("b", {"2"}, "latest") == "busy 1");
  CHECK(lock.join("c", {"2"}, "latest") == "busy 1");
  CHECK(lock.join("d", {"2"}) == "full 2");
  CHECK(lock.line() == Words{"a", "c"});
  CHECK(word(lock.release_as(lock.kind, "c")) == "left");
  CHECK(lock.join("e", {"1"}, "latest") == "full 1");
}
