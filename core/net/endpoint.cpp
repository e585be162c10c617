// SPDX-License-Identifier: Apache-2.0
#include "net/endpoint.h"

#include <algorithm>
#include <string_view>
#include "base/server_schemes.h"
#include "base/text.h"
#include "net/url_parts.h"

namespace rlock {
namespace {

// The form that parse_url reads back, in which an '@' is not taken for the end of a secret.
std::string encoded_path(std::string_view path)
{
  constexpr std::string_view special = "%?#@ \\";
  std::string out;
  for (const char& c : path) {
    const bool is_plain =
        !is_control(c) && static_cast<unsigned char>(c) < 0x80 && special.find(c) == std::string_view::npos;
    out += is_plain ? std::string(1, c) : percent_encoded({&c, 1});
  }
  return out;
}

std::string shown_hosts(const std::vector<HostPort>& hosts)
{
  return joined(hosts, ",", [](const HostPort& at) { return show(at); });
}

// `login`: "user@" or empty.
std::string sentinel_url(const Endpoint& endpoint, const std::string& login, bool with_users)
{
  const Sentinels& sentinels = endpoint.sentinels;
  std::string parameters;
  if (endpoint.tls.has_value() != sentinels.tls.has_value()) {
    parameters += std::string("?sentinel_tls=") + (sentinels.tls ? "yes" : "no");
  }
  if (with_users && !sentinels.user.empty()) {
    parameters += (parameters.empty() ? "?" : "&") + ("sentinel_username=" + percent_encoded(sentinels.user));
  }
  return (endpoint.tls ? "rediss+sentinel://" : "redis+sentinel://") + login + shown_hosts(sentinels.hosts) + "/" +
         sentinels.master + (endpoint.db == 0 ? "" : "/" + std::to_string(endpoint.db)) + parameters;
}

// `login`: "user@" or empty.
std::string other_url(const Endpoint& endpoint, const std::string& login)
{
  std::string rest = endpoint.path;
  if (rest.starts_with("//")) {
    rest.insert(2, login);
  }
  return endpoint.scheme + ":" + rest;
}

std::string url_of(const Endpoint& endpoint, bool with_users)
{
  const std::string login = with_users && !endpoint.user.empty() ? percent_encoded(endpoint.user) + "@" : "";
  const std::string db = std::to_string(endpoint.db);
  switch (endpoint.kind) {
    case Endpoint::Kind::local: return "local:";
    case Endpoint::Kind::other: return other_url(endpoint, login);
    case Endpoint::Kind::unix_socket:
      return "unix://" + login + encoded_path(endpoint.path) + (endpoint.db == 0 ? "" : "?db=" + db);
    case Endpoint::Kind::sentinel: return sentinel_url(endpoint, login, with_users);
    case Endpoint::Kind::cluster:
      return (endpoint.tls ? "rediss+cluster://" : "redis+cluster://") + login + shown_hosts(endpoint.nodes);
    case Endpoint::Kind::tcp: break;
  }
  return (endpoint.tls ? endpoint.scheme_with_tls() : endpoint.scheme) + "://" + login +
         show(HostPort{endpoint.host, endpoint.port}) + (endpoint.db == 0 ? "" : "/" + db);
}

}  // namespace

std::string show(const HostPort& at)
{
  const bool ipv6 = at.host.find(':') != std::string::npos;
  return (ipv6 ? "[" + at.host + "]" : at.host) + ":" + std::to_string(at.port);
}

std::string Endpoint::scheme_with_tls() const
{
  const ServerScheme* const known = find_scheme(scheme);
  return std::string(known == nullptr || known->with_tls.empty() ? scheme : known->with_tls);
}

std::string Endpoint::shown() const { return url_of(*this, false); }

std::string Endpoint::without_passwords() const { return url_of(*this, true); }

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

std::string with_login(std::string text, std::string_view login)
{
  constexpr std::string_view all = "the URL, RLOCK_PASSWORD";
  const auto begin = text.find("check " + std::string(all));
  if (begin == std::string::npos || login.empty()) {
    return text;
  }
  const auto at = text.find(all, begin);
  return text.replace(at, std::min(text.find_first_of(";)", at), text.size()) - at, login);
}

}  // namespace rlock
