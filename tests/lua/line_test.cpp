// SPDX-License-Identifier: Apache-2.0
// On what terms a caller joins the queue, in the scripts (calls::JoinTerms).
#include "lua/kinds.h"

using namespace rlock::test;

namespace {

// A lock that "holder" has, and its line.
struct LineFixture : ScriptedLock {
  explicit LineFixture(const LockKind& of_kind = Plain{}, RedisOptions options = {})
      : ScriptedLock(of_kind, std::move(options)), kind(of_kind)
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
  std::string join_with(int priority, const std::string& owner, const std::string& how = "wait")
  {
    return join(owner, {"", "", std::to_string(priority)}, how);
  }
  std::string join_again(int priority, const std::string& owner, const std::string& how = "wait")
  {
    return join(owner, {"", "", std::to_string(priority)}, how, tickets.at(owner));
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

EACH_KIND_CASE("line script: no caller joins more waiters than it allows, and the line stays as it is")
{
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

EACH_KIND_CASE("line script: a greater priority stands in front, and among the same the first that comes")
{
  LineFixture lock(kind.kind);
  CHECK(lock.join_with(-100, "low") == "busy 0");
  CHECK(lock.join("a", {}) == "busy 0");
  CHECK(lock.join_with(0, "b") == "busy 1");
  CHECK(lock.join_with(100, "urgent") == "busy 0");
  CHECK(lock.join("freeze", {}, "first") == "busy 0");
  CHECK(lock.join_with(5, "high") == "busy 2");
  CHECK(lock.join_with(100, "urgent too") == "busy 2");
  const Words line{"freeze", "urgent", "urgent too", "high", "a", "b", "low"};
  CHECK(lock.line() == line);
  std::uint64_t before = 0;
  for (const std::string owner : {"low", "a", "b", "urgent", "high", "urgent too"}) {
    const std::uint64_t ticket = std::stoull(lock.tickets[owner]);
    CHECK(ticket > before);
    before = ticket;
  }
  CHECK(lock.join_with(5, "high") == "busy 3");
  CHECK(lock.join_again(-100, "low") == "busy 6");
  lock.server.command({"DEL", lock.keys().queue, lock.keys().waiters});
  for (const auto& [priority, owner] : std::map<int, std::string>{{-100, "low"}, {0, "b"}, {5, "high"}}) {
    lock.join_again(priority, owner);
  }
  lock.join_again(100, "urgent too"), lock.join_again(100, "urgent"), lock.join_again(0, "a");
  lock.join_again(0, "freeze", "first");
  CHECK(lock.line() == line);
}

TEST_CASE("line script: a server's clock that is set back changes no order among the same priority")
{
  LineFixture lock(Plain{}, {.alone = true, .own_clock = true});
  lock.join_with(0, "a"), lock.join_with(7, "high"), lock.join_with(-7, "low"), lock.join("freeze", {}, "first");
  lock.server.step_clock(Millis(-3'600'000));
  lock.join_with(0, "b"), lock.join_with(7, "high too"), lock.join_with(-7, "low too"), lock.join("thaw", {}, "first");
  CHECK(lock.line() == Words{"freeze", "thaw", "high", "high too", "a", "b", "low", "low too"});
}

TEST_CASE("line script: a waiter with a priority that has just come counts as alive, and one that is dead does not")
{
  for (const int priority : {-100, -1, 1, 100}) {
    CAPTURE(priority);
    LineFixture lock;
    CHECK(lock.join_with(priority, "dead") == "busy 0");
    CHECK(lock.join_with(priority, "new") == "busy 1");
    lock.let_grace_pass("dead");
    CHECK(word(lock.release_as(lock.kind, "holder")) == "released");
    CHECK(lock.count("new") == 1);
    const std::string log = as_texts(lock.server.command({"LRANGE", lock.keys().events, "-1", "-1"})).front();
    const auto waited = log.find("waited");
    REQUIRE(waited != std::string::npos);
    CHECK(std::stoll(log.substr(waited + 7)) < 60'000);
  }
}

TEST_CASE("line script: with --latest the newer one counts, whichever priority it has")
{
  LineFixture lock;
  lock.join_with(0, "older", "latest"), lock.join_with(10, "newer", "latest");
  CHECK(lock.line() == Words{"newer"});
  lock.server.command({"DEL", lock.keys().events});
  CHECK(lock.join_again(0, "older", "latest") == "replaced");
  CHECK(lock.join_with(-10, "newest", "latest") == "busy 0");
  CHECK(lock.join_again(10, "newer", "latest") == "replaced");
}

TEST_CASE("line script: those in front of which later callers join know how many")
{
  LineFixture lock;
  lock.join_with(0, "a"), lock.join_with(0, "b"), lock.join_with(5, "high"), lock.join_with(9, "top");
  lock.join_with(5, "high"), lock.join_again(5, "high"), lock.join_with(0, "c"), lock.join("freeze", {}, "first");
  std::string passed;
  const auto waiting = lock.inspect().elements.at(6).elements;
  for (std::size_t i = 0; i + 4 < waiting.size(); i += 5) {
    passed += waiting[i].text + " " + std::to_string(waiting[i + 4].integer) + ", ";
  }
  CHECK(passed == "freeze 0, top 0, high 1, a 2, b 2, c 0, ");
  CHECK(word(lock.release_as(lock.kind, "a")) == "left");
  CHECK_FALSE(lock.hash(lock.keys().waiters).contains("passed:a"));
}

TEST_CASE(
    "line script: a reader that takes the place of the writer before it asks again at once, and reads beside the "
    "others")
{
  for (const std::string how : {"wait", "latest"}) {
    CAPTURE(how);
    LineFixture lock(Reader{});
    REQUIRE(word(lock.release_as(Writer{}, "holder")) == "released");
    REQUIRE(word(lock.acquire_as(Reader{}, "reader")) == "granted");
    REQUIRE(word(lock.acquire_as(Writer{}, "writer", how)) == "busy");
    const auto read = [&](const std::string& ticket) {
      return lock.eval_as(Reader{}, scripts_of(Reader{}).acquire, "urgent",
                          {"urgent", "30000", "host=h\npid=1", how, ticket, "0", "unchecked", "", "", "5"});
    };
    const Reply busy = read("0");
    REQUIRE(word(busy) == "busy");
    CHECK(busy.elements.at(1).integer == 0);  // the ttl
    CHECK(busy.elements.at(5).integer == 0);  // the place
    CHECK(busy.elements.at(7).kind == Reply::Kind::nil);
    CHECK(word(read(busy.elements.at(6).text)) == "granted");
    CHECK(lock.line() == (how == "wait" ? Words{"writer"} : Words{}));
  }
}
