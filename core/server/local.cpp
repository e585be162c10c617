// SPDX-License-Identifier: Apache-2.0
#include "server/local.h"

#include <utility>

namespace rlock {

Local::Local(LocalPlace place, const Clock& clock)
    : Direct({.kind = Endpoint::Kind::local}, clock), m_place(std::move(place))
{
}

Result<Done> Local::connect(const CallLimits& limit)
{
  if (is_connected()) {
    return Done{};
  }
  auto endpoint = local_server(m_place, clock(), limit);
  return endpoint ? connect_to(*std::move(endpoint), limit) : Result<Done>(endpoint.error());
}

Result<Subscription> Local::subscribe(std::span<const std::string_view> channels, const CallLimits& limit)
{
  const auto endpoint = local_server(m_place, clock(), limit);
  return endpoint ? Subscription::open(*endpoint, channels, clock(), limit) : Result<Subscription>(endpoint.error());
}

}  // namespace rlock
