// SPDX-License-Identifier: Apache-2.0
// The messages to waiters, and when they are sent, on a real server.
#include "stores/open.h"
#include "support/integration.h"

#include <poll.h>

using namespace rlock::test;

namespace {

class WaitingFixture {
 public:
  WaitingFixture() : m_store(*open_store({.endpoints = {*parse_url(server.direct_url())}}, m_clock, StopToken::never()))
  {
  }

  Attempt ask(const std::string& owner, const std::string& name = "k", AcquireOptions options = {.queues = true})
  {
    const auto answer = m_store->acquire(spec(name), Owner::of(owner), options, soon());
    REQUIRE(answer);
    return *answer;
  }
  Busy enqueue(const std::string& owner) { return std::get<Busy>(ask(owner)); }
  void leave(const std::string& owner) { REQUIRE(m_store->release(spec("k"), Owner::of(owner), {}, soon())); }
  std::unique_ptr<Listener> listener_of(const std::string& owner, const std::vector<std::string>& names = {"k"})
  {
    std::vector<LockSpec> specs;
    for (const std::string& name : names) {
      specs.push_back(spec(name));
    }
    auto listener = m_store->listen(specs, Owner::of(owner), soon());
    REQUIRE(listener);
    return *std::move(listener);
  }
  // All hints so far, at least one.
  Hints hints_for(Listener& listener)
  {
    pollfd wait{.fd = listener.fd(), .events = POLLIN, .revents = 0};
    REQUIRE(::poll(&wait, 1, 10'000) == 1);
    const auto hints = listener.heard(m_clock);
    REQUIRE(hints);
    return *hints;
  }

  RedisServer server;

 private:
  static LockSpec spec(const std::string& name)
  {
    return {.name = *LockName::parse(name), .kind = {}, .ttl = 30s, .who = {.host = "h", .pid = 1}, .once = {}};
  }
  [[nodiscard]] CallLimits soon() const { return {.deadline = m_clock.now() + 10s, .stop = StopToken::never()}; }

  const BootClock m_clock;
  std::unique_ptr<LockStore> m_store;
};

}  // namespace

TEST_CASE("queue position: a request without waiting is told the queue's length, and does not join")
{
  WaitingFixture fixture;
  fixture.ask("holder");
  const auto look = [&] { return std::get<Busy>(fixture.ask("waiter", "k", {.queues = false})); };
  CHECK(look().waiters_ahead == 0);
  fixture.enqueue("a");
  fixture.enqueue("b");
  CHECK(look().waiters_ahead == 2);
  CHECK(look().ticket == 0);
  CHECK(as_int(fixture.server.command({"ZCARD", "rlock:queue:{k}"})) == 2);
}

TEST_CASE("queue position: when the first leaves, the next is told when the ttl of the lock is over")
{
  WaitingFixture fixture;
  fixture.ask("holder");
  const auto second = fixture.listener_of("b");
  fixture.enqueue("a");
  fixture.enqueue("b");
  fixture.enqueue("c");
  fixture.leave("c");  // no message: the hint below is the first one
  fixture.leave("a");
  const Hint hint = fixture.hints_for(*second).front();
  CHECK(hint.next);
  REQUIRE(hint.look_in);
  CHECK(*hint.look_in > 5s);
}

TEST_CASE("queue position: when the first leaves behind a foreign holder, the next asks at once and listens to it")
{
  WaitingFixture fixture;
  fixture.server.command({"HSET", "k", "foreign:1", "1"});
  fixture.server.command({"PEXPIRE", "k", "30000"});
  const auto second = fixture.listener_of("b");
  fixture.enqueue("a");
  fixture.enqueue("b");
  fixture.leave("a");
  CHECK(fixture.hints_for(*second).front().look_in == 0ms);
}

TEST_CASE("queue position: one connection gets the messages of several locks, each by itself")
{
  WaitingFixture fixture;
  for (const std::string name : {"k:0", "k:1", "k:2"}) {
    fixture.ask("holder", name);
    fixture.ask("waiter", name);
  }
  const auto listener = fixture.listener_of("waiter", {"k:2", "k:0", "k:1"});
  fixture.server.command({"PUBLISH", "rlock:owner:{k:0}:waiter", "yours"});
  const Hints first = fixture.hints_for(*listener);
  REQUIRE(first.size() == 3);
  CHECK_FALSE(first[0].look_in);
  CHECK(first[1].look_in == 0ms);
  CHECK_FALSE(first[2].look_in);

  REQUIRE(listener->hear_releases(2, {.deadline = BootClock().now() + 10s, .stop = StopToken::never()}));
  fixture.server.command({"PUBLISH", "redisson_lock__channel:{k:1}", "0"});
  const Hints second = fixture.hints_for(*listener);
  CHECK_FALSE(second[0].look_in);
  CHECK_FALSE(second[1].look_in);
  CHECK(second[2].look_in == 0ms);
  CHECK(as_int(fixture.server.command({"PUBLISH", "redisson_lock__channel:{k:0}", "0"})) == 0);
}

TEST_CASE("queue position: a waiter ignores that an attempt of a quorum was taken back, which a JVM has to hear")
{
  WaitingFixture fixture;
  fixture.ask("holder");
  fixture.enqueue("a");
  const auto listener = fixture.listener_of("a");
  REQUIRE(listener->hear_releases(0, {.deadline = BootClock().now() + 10s, .stop = StopToken::never()}));
  fixture.server.command({"PUBLISH", "redisson_lock__channel:{k}", "00"});
  CHECK_FALSE(fixture.hints_for(*listener).at(0).look_in);
  fixture.server.command({"PUBLISH", "redisson_lock__channel:{k}", "0"});
  CHECK(fixture.hints_for(*listener).at(0).look_in == Millis{0});
}
