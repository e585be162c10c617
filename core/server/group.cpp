// SPDX-License-Identifier: Apache-2.0
#include "server/group.h"

#include "server/url_parts.h"

#include <charconv>
#include <utility>

namespace rlock {

std::optional<HostPort> master_address_in(const Reply& reply)
{
  if (reply.elements.size() != 2) {
    return std::nullopt;
  }
  HostPort at{.host = reply.elements[0].text, .port = 0};
  const std::string& port = reply.elements[1].text;
  std::from_chars(port.data(), port.data() + port.size(), at.port);
  return at.port != 0 && is_host(at.host) ? std::optional(std::move(at)) : std::nullopt;
}

Endpoint sentinel_at(const Endpoint& group, const HostPort& at)
{
  Endpoint sentinel;
  sentinel.host = at.host;
  sentinel.port = at.port;
  sentinel.user = group.sentinels.user;
  sentinel.password = group.sentinels.password;
  sentinel.tls = group.sentinels.tls;
  return sentinel;
}

Endpoint server_at(const Endpoint& group, const HostPort& at)
{
  Endpoint server = group;
  server.kind = Endpoint::Kind::tcp;
  server.host = at.host;
  server.port = at.port;
  server.nodes.clear();
  server.sentinels = {};
  server.must_be_master = group.kind == Endpoint::Kind::sentinel;
  return server;
}

}  // namespace rlock
