// SPDX-License-Identifier: Apache-2.0
#include "server/local.h"

#include "net/wait.h"

#include <algorithm>
#include <utility>

namespace rlock {

Local::Local(LocalPlace place, const Clock& clock) : m_place(std::move(place)), m_clock(clock) {}

Result<Reply> Local::call(std::string_view route_key, std::span<const std::string_view> argv, const CallLimits& limit)
{
  if (const auto connected = connect(limit); !connected) {
    return connected.error();
  }
  auto reply = m_server->call(route_key, argv, limit);
  if (!reply) {
    forget();
  }
  return reply;
}

Result<Reply> Local::follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                               const CallLimits& limit)
{
  return m_server ? m_server->follow_up(route_key, argv, limit) : cut_off("local:");
}

std::vector<Result<Reply>> Local::call_each(std::span<const Request> requests, const CallLimits& limit)
{
  if (const auto connected = connect(limit); !connected) {
    return std::vector<Result<Reply>>(requests.size(), connected.error());
  }
  auto replies = m_server->call_each(requests, limit);
  if (std::any_of(replies.begin(), replies.end(), [](const Result<Reply>& reply) { return !reply; })) {
    forget();
  }
  return replies;
}

Result<Subscription> Local::subscribe(std::span<const std::string_view> channels, const CallLimits& limit)
{
  const auto endpoint = local_server(m_place, m_clock, limit);
  return endpoint ? Subscription::open(*endpoint, channels, m_clock, limit) : Result<Subscription>(endpoint.error());
}

void Local::forget() { m_server.reset(); }

Result<Done> Local::connect(const CallLimits& limit)
{
  if (m_server) {
    return Done{};
  }
  auto endpoint = local_server(m_place, m_clock, limit);
  if (!endpoint) {
    return endpoint.error();
  }
  m_server.emplace(*std::move(endpoint), m_clock);
  auto connected = m_server->connect(limit);
  if (!connected) {
    forget();
  }
  return connected;
}

}  // namespace rlock
