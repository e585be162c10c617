// SPDX-License-Identifier: Apache-2.0
// What those in line are told, and when, on a real server.
#include "store/open.h"
#include "support/redis_fixture.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include <poll.h>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

class Line {
 public:
  Line() : m_store(*open_store({.endpoints = {*parse_url(server.direct_url())}}, m_clock, StopToken::never())) {}

  Attempt ask(const std::string& owner, const std::string& name = "k", AcquireOptions manner = {.queues = true})
  {
    const auto answer = m_store->acquire(spec(name), Owner::of(owner), manner, soon());
    REQUIRE(answer);
    return *answer;
  }
  Busy stand(const std::string& owner) { return std::get<Busy>(ask(owner)); }
  void leave(const std::string& owner) { REQUIRE(m_store->release(spec("k"), Owner::of(owner), {}, soon())); }
  std::unique_ptr<Listener> ears_of(const std::string& owner, const std::vector<std::string>& names = {"k"})
  {
    std::vector<LockSpec> specs;
    for (const std::string& name : names) {
      specs.push_back(spec(name));
    }
    auto listener = m_store->listen(specs, Owner::of(owner), soon());
    REQUIRE(listener);
    return *std::move(listener);
  }
  // What has been said, once something has.
  Hints said_to(Listener& listener)
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
    return {.name = *LockName::parse(name), .mode = {}, .ttl = 30s, .who = {.host = "h", .pid = 1}, .once = {}};
  }
  [[nodiscard]] CallLimits soon() const { return {.deadline = m_clock.now() + 10s, .stop = StopToken::never()}; }

  const BootClock m_clock;
  std::unique_ptr<LockStore> m_store;
};

}  // namespace

TEST_CASE("in line: who only looks is told how many wait, and does not wait")
{
  Line line;
  line.ask("holder");
  const auto look = [&] { return std::get<Busy>(line.ask("us", "k", {.queues = false})); };
  CHECK(look().waiters_ahead == 0);
  line.stand("a");
  line.stand("b");
  CHECK(look().waiters_ahead == 2);
  CHECK(look().ticket == 0);
  CHECK(as_int(line.server.command({"ZCARD", "rlock:queue:{k}"})) == 2);
}

TEST_CASE("in line: when the first leaves, the next is told when the ttl of the lock is over")
{
  Line line;
  line.ask("holder");
  const auto second = line.ears_of("b");
  line.stand("a");
  line.stand("b");
  line.stand("c");
  line.leave("c");  // says nothing: what is heard below is the first word of all
  line.leave("a");
  const Hint hint = line.said_to(*second).front();
  CHECK(hint.next);
  REQUIRE(hint.look_in);
  CHECK(*hint.look_in > 5s);
}

TEST_CASE(
    "in line: when the first leaves behind a foreign holder, the next is to ask at once, for it has to hear that one")
{
  Line line;
  line.server.command({"HSET", "k", "foreign:1", "1"});
  line.server.command({"PEXPIRE", "k", "30000"});
  const auto second = line.ears_of("b");
  line.stand("a");
  line.stand("b");
  line.leave("a");
  CHECK(line.said_to(*second).front().look_in == 0ms);
}

TEST_CASE("in line: one connection hears of several locks, of each apart")
{
  Line line;
  for (const std::string name : {"k:0", "k:1", "k:2"}) {
    line.ask("holder", name);
    line.ask("us", name);
  }
  const auto ears = line.ears_of("us", {"k:2", "k:0", "k:1"});
  line.server.command({"PUBLISH", "rlock:owner:{k:0}:us", "yours"});
  const Hints first = line.said_to(*ears);
  REQUIRE(first.size() == 3);
  CHECK_FALSE(first[0].look_in);
  CHECK(first[1].look_in == 0ms);
  CHECK_FALSE(first[2].look_in);

  REQUIRE(ears->hear_releases(2, {.deadline = BootClock().now() + 10s, .stop = StopToken::never()}));
  line.server.command({"PUBLISH", "redisson_lock__channel:{k:1}", "0"});
  const Hints second = line.said_to(*ears);
  CHECK_FALSE(second[0].look_in);
  CHECK_FALSE(second[1].look_in);
  CHECK(second[2].look_in == 0ms);
  CHECK(as_int(line.server.command({"PUBLISH", "redisson_lock__channel:{k:0}", "0"})) == 0);
}
