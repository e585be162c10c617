// SPDX-License-Identifier: Apache-2.0
#include "net/endpoint.h"

#include "base/text.h"

#include <algorithm>
#include <string_view>

namespace rlock {
namespace {

// The form that parse_url reads back, in which an '@' is not taken for the end of a secret.
std::string percent_encoded(std::string_view path)
{
  constexpr std::string_view digits = "0123456789ABCDEF";
  constexpr std::string_view special = "%?#@ \\";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_control(c) || byte >= 0x80 || special.find(c) != std::string_view::npos) {
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      out += c;
    }
  }
  return out;
}

std::string show_sentinel(const Endpoint& endpoint)
{
  std::string hosts;
  for (const HostPort& at : endpoint.sentinels.hosts) {
    hosts += (hosts.empty() ? "" : ",") + show(at);
  }
  const bool differ = endpoint.tls.has_value() != endpoint.sentinels.tls.has_value();
  return (endpoint.tls ? "rediss+sentinel://" : "redis+sentinel://") + hosts + "/" + endpoint.sentinels.master +
         (endpoint.db == 0 ? "" : "/" + std::to_string(endpoint.db)) +
         (differ ? std::string("?sentinel_tls=") + (endpoint.sentinels.tls ? "yes" : "no") : "");
}

}  // namespace

std::string show(const HostPort& at)
{
  const bool ipv6 = at.host.find(':') != std::string::npos;
  return (ipv6 ? "[" + at.host + "]" : at.host) + ":" + std::to_string(at.port);
}

std::string Endpoint::shown() const
{
  if (kind == Kind::local) {
    return "local:";
  }
  if (kind == Kind::other) {
    return scheme + ":" + path;
  }
  if (kind == Kind::unix_socket) {
    return "unix://" + percent_encoded(path) + (db == 0 ? "" : "?db=" + std::to_string(db));
  }
  if (kind == Kind::sentinel) {
    return show_sentinel(*this);
  }
  if (kind == Kind::cluster) {
    std::string hosts;
    for (const HostPort& node : nodes) {
      hosts += (hosts.empty() ? "" : ",") + show(node);
    }
    return (tls ? "rediss+cluster://" : "redis+cluster://") + hosts;
  }
  return (tls ? "rediss://" : "redis://") + show(HostPort{host, port}) + (db == 0 ? "" : "/" + std::to_string(db));
}

std::vector<HostPort> Endpoint::addresses() const
{
  switch (kind) {
    case Kind::tcp: return {HostPort{host, port}};
    case Kind::sentinel: return sentinels.hosts;
    case Kind::cluster: return nodes;
    case Kind::unix_socket:
    case Kind::local:
    case Kind::other: return {};
  }
  return {};
}

// A server may know a user by its TLS certificate.
bool Endpoint::is_authenticated() const
{
  return !user.empty() || !password.empty() || !password_file.empty() || (tls && !tls->certificate.empty());
}

bool Endpoint::is_same_server(const Endpoint& other) const
{
  if (kind != other.kind || scheme != other.scheme || path != other.path) {
    return false;
  }
  const std::vector<HostPort> own = addresses();
  const std::vector<HostPort> others = other.addresses();
  const bool have_one_in_common = std::any_of(own.begin(), own.end(), [&](const HostPort& at) {
    return std::find(others.begin(), others.end(), at) != others.end();
  });
  return own.empty() || (have_one_in_common && sentinels.master == other.sentinels.master);
}

}  // namespace rlock
