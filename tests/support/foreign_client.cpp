// SPDX-License-Identifier: Apache-2.0
#include "support/foreign_client.h"

#include "support/topology.h"

#include "support/redis_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <thread>

namespace rlock::test {
namespace {

constexpr Millis await_limit{5000};
constexpr const char* lease_ms = "30000";

constexpr const char* acquire = R"(
local mine = redis.call('hexists', KEYS[1], ARGV[2]) == 1
if mine or redis.call('exists', KEYS[1]) == 0 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1]))";

constexpr const char* release = R"(
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
  return nil
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], '0')
return 1)";

}  // namespace

ForeignClient::ForeignClient(const std::string& url, std::string key, std::string owner)
    : m_endpoint(*parse_url(url)),
      m_key(std::move(key)),
      m_channel("redisson_lock__channel:{" + m_key + "}"),
      m_owner(std::move(owner))
{
  skip_on_databases("clients that are not rlock use Redis");
}

Reply ForeignClient::call(const std::vector<std::string>& words)
{
  const CallLimits limit{.deadline = m_clock.now() + await_limit, .stop = StopToken::never()};
  if (!m_connection) {
    auto opened = Connection::open(m_endpoint, m_clock, limit);
    REQUIRE(opened);
    m_connection = *std::move(opened);
  }
  const std::vector<std::string_view> argv(words.begin(), words.end());
  auto reply = m_connection->call(argv, limit);
  REQUIRE(reply);
  CAPTURE(show(*reply));
  REQUIRE_FALSE(reply->is_error());
  return *std::move(reply);
}

std::optional<Millis> ForeignClient::try_lock()
{
  const Reply reply = call({"EVAL", acquire, "1", m_key, lease_ms, m_owner});
  return reply.kind == Reply::Kind::nil ? std::nullopt : std::optional{Millis{reply.integer}};
}

bool ForeignClient::lock(Instant until, Millis reaction)
{
  if (!try_lock()) {
    return true;
  }
  const std::array<std::string_view, 1> channels{m_channel};
  auto ear = Subscription::open(m_endpoint, channels, m_clock,
                                {.deadline = m_clock.now() + await_limit, .stop = StopToken::never()});
  REQUIRE(ear);
  while (m_clock.now() < until) {
    const auto ttl = try_lock();
    if (!ttl) {
      return true;
    }
    const Instant rest = ttl->count() < 0 ? until : std::min(until, m_clock.now() + *ttl);
    const auto message = ear->next({.deadline = rest, .stop = StopToken::never()});
    REQUIRE(message);
    std::this_thread::sleep_for(reaction);  // as long as a JVM takes from message to script
  }
  return false;
}

void ForeignClient::unlock() { call({"EVAL", release, "2", m_key, m_channel, "0", m_owner}); }

void ForeignClient::force_unlock()
{
  call({"DEL", m_key});
  call({"PUBLISH", m_channel, "0"});
}

}  // namespace rlock::test
