// SPDX-License-Identifier: Apache-2.0
#include "server/local.h"

#include <utility>

namespace rlock {

Local::Local(LocalSpec spec, const Clock& clock)
    : Direct({.kind = Endpoint::Kind::local}, clock), m_spec(std::move(spec))
{
}

Result<Done> Local::connect(const CallLimits& limit)
{
  if (is_connected()) {
    return Done{};
  }
  const auto server = local_server(m_spec, clock(), limit);
  return server ? connect_to(server->endpoint, limit) : Result<Done>(server.error());
}

Result<Subscription> Local::subscribe(std::span<const std::string_view> channels, const CallLimits& limit)
{
  const auto server = local_server(m_spec, clock(), limit);
  return server ? Subscription::open(server->endpoint, channels, clock(), limit) : Result<Subscription>(server.error());
}

}  // namespace rlock
