// SPDX-License-Identifier: Apache-2.0
// Reentry over a connection that loses the reply to any one request.
#include "lock/reentry.h"

#include "redis/redis_store.h"
#include "redis/transport.h"
#include "support/integration.h"
#include "support/limits.h"

using namespace rlock::test;

namespace {

const BootClock boot_clock;

// Passes on all requests, but loses the reply to the request with that number, from 1.
class LossyTransport final : public Transport {
 public:
  LossyTransport(const Endpoint& endpoint, int lost, int& calls)
      : m_direct(endpoint, boot_clock), m_lost(lost), m_calls(calls)
  {
  }
  Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv,
                     const CallLimits& limit) override
  {
    auto reply = m_direct.call(route_key, argv, limit);
    return ++m_calls == m_lost ? Result<Reply>(Error{ErrorCode::unreachable, "no answer"}) : std::move(reply);
  }
  Result<Reply> follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                          const CallLimits& limit) override
  {
    return m_direct.follow_up(route_key, argv, limit);
  }
  Result<Subscription> subscribe(std::span<const std::string_view> channels, const CallLimits& limit) override
  {
    return m_direct.subscribe(channels, limit);
  }
  void drop_connection() override { m_direct.drop_connection(); }

 private:
  Direct m_direct;
  const int m_lost;
  int& m_calls;
};

LockSpec spec(Millis ttl = 30s)
{
  return {.name = *LockName::parse("k"), .kind = Plain{}, .ttl = ttl, .who = {.host = "h"}, .once = {}};
}

std::int64_t count(const RedisServer& server, const Owner& owner)
{
  const Reply held = server.command({"HGET", "k", owner.text()});
  return held.kind == Reply::Kind::nil ? 0 : std::stoll(held.text);
}

}  // namespace

TEST_CASE("reentry: whichever answer is lost, it counts once or not at all")
{
  const RedisServer server;
  const Endpoint endpoint = *parse_url(server.direct_url());
  SystemRng rng;
  RedisStore store(std::make_unique<Direct>(endpoint, boot_clock), boot_clock);
  bool was_lost = true;
  for (int lost = 1; was_lost; ++lost) {
    CAPTURE(lost);
    server.command({"SCRIPT", "FLUSH"});
    const Owner owner = Owner::fresh(rng, 1);
    REQUIRE(store.acquire(spec(), owner, {}, soon()));

    int calls = 0;
    RedisStore lossy(std::make_unique<LossyTransport>(endpoint, lost, calls), boot_clock);
    const Hold nested = Hold::nested_in(owner, rng, 1);
    const auto taken = reenter_lock(lossy, spec(), nested, 5s, boot_clock, StopToken::never());
    was_lost = calls >= lost;
    CHECK(static_cast<bool>(taken) != was_lost);
    CHECK(count(server, owner) == (taken ? 2 : 1));
    if (taken) {
      CHECK(std::get<Taken>(*taken).grant.count == 2);
      CHECK(store.release(spec(), nested, {}, soon()));
    }
    const auto released = store.release(spec(), owner, {}, soon());
    REQUIRE(released);
    CHECK(std::holds_alternative<Released>(*released));
  }
}

TEST_CASE("reentry: an owner that does not hold it is told so, and nothing is queued or taken")
{
  const RedisServer server;
  SystemRng rng;
  RedisStore store(std::make_unique<Direct>(*parse_url(server.direct_url()), boot_clock), boot_clock);
  const Hold nested = Hold::nested_in(Owner::of("gone:1"), rng, 1);
  const auto refused = reenter_lock(store, spec(), nested, 5s, boot_clock, StopToken::never());
  REQUIRE(refused);
  CHECK(std::holds_alternative<NotHeld>(*refused));
  CHECK(as_int(server.command({"DBSIZE"})) == 0);
}

TEST_CASE("reentry: a stop ends it, and its hold is released")
{
  RedisServer server;
  SystemRng rng;
  RedisStore store(std::make_unique<Direct>(*parse_url(server.direct_url()), boot_clock), boot_clock);
  const Owner owner = Owner::fresh(rng, 1);
  REQUIRE(store.acquire(spec(), owner, {}, soon()));
  StopSource stop;
  stop.request();
  const auto outcome = reenter_lock(store, spec(), Hold::nested_in(owner, rng, 1), 5s, boot_clock, stop.token());
  REQUIRE(outcome);
  CHECK(std::holds_alternative<Interrupted>(*outcome));
  CHECK(count(server, owner) == 1);
}
