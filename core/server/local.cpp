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
  auto endpoint = local_server(m_spec, clock(), limit);
  return endpoint ? connect_to(*std::move(endpoint), limit) : Result<Done>(endpoint.error());
}

Result<Subscription> Local::subscribe(std::span<const std::string_view> channels, const CallLimits& limit)
{
  const auto endpoint = local_server(m_spec, clock(), limit);
  return endpoint ? Subscription::open(*endpoint, channels, clock(), limit) : Result<Subscription>(endpoint.error());
}

}  // namespace rlock
