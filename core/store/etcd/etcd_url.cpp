// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/etcd_url.h"

#include <algorithm>
#include <optional>
#include "base/text.h"
#include "net/url_parts.h"

namespace rlock::etcd {
namespace {

// The hosts and the prefix of a URL, or why they are invalid.
struct Location {
  std::vector<HostPort> hosts;
  std::string prefix{default_prefix};
  std::string why;  // empty: nothing is wrong
};

// "host:2379,other/prefix"
Location location_in(std::string_view text)
{
  Location found;
  const auto slash = std::min(text.find('/'), text.size());
  std::string_view hosts = text.substr(0, slash);
  if (hosts.empty()) {
    found.why = "it names no host";
    return found;
  }
  auto prefix = percent_decoded(text.substr(std::min(slash + 1, text.size())));
  if (!prefix || prefix->find('\0') != std::string::npos) {
    found.why = prefix ? "the prefix has a byte 0" : bad_escape;
    return found;
  }
  while (prefix->ends_with('/')) {
    prefix->pop_back();
  }
  if (!prefix->empty()) {
    found.prefix = *prefix;
  }
  for (bool is_last = false; !is_last;) {
    const auto end = std::min(hosts.find(','), hosts.size());
    auto at = host_port(hosts.substr(0, end));
    if (!at) {
      found.why = "'" + printable(hosts.substr(0, end)) + "' is no host with a port from 1 to 65535";
      return found;
    }
    at->port = at->port == 0 ? default_port : at->port;
    found.hosts.push_back(*at);
    is_last = end == hosts.size();
    hosts.remove_prefix(std::min(end + 1, hosts.size()));
  }
  return found;
}

}  // namespace

Result<Endpoint> parse_etcd_url(std::string_view url)
{
  const std::string name(url.substr(0, url.find(':')));
  const auto read = read_server_url(url, name + "://user@host:2379,other/prefix");
  if (!read) {
    return read.error();
  }
  const auto invalid = [&](std::string_view why) {
    return invalid_url(url, why, name + "://user@host:2379,other/prefix");
  };
  if (read->user.empty() && !read->password.empty()) {
    return invalid("a password needs a user");
  }
  if (!read->parts.parameters.empty()) {
    return invalid("it has no parameters");
  }
  if (const Location location = location_in(read->parts.location); !location.why.empty()) {
    return invalid(location.why);
  }
  Endpoint endpoint;
  endpoint.scheme = name;
  endpoint.kind = Endpoint::Kind::other;
  endpoint.path = read->parts.without_login();
  endpoint.user = read->user;
  endpoint.password = read->password;
  if (name == tls_scheme) {
    endpoint.tls.emplace();
  }
  return endpoint;
}

ConnectionSpec connection_spec(const Endpoint& endpoint)
{
  const Location location = location_in(url_parts(endpoint.path).location);
  ConnectionSpec spec;
  spec.url = endpoint.shown();
  spec.user = endpoint.user;
  spec.password = endpoint.password;
  spec.prefix = location.prefix;
  for (const HostPort& at : location.hosts) {
    Endpoint& member = spec.members.emplace_back();
    member.scheme = scheme;
    member.host = at.host;
    member.port = at.port;
    member.tls = endpoint.tls;
    member.password_file = endpoint.password_file;
  }
  return spec;
}

}  // namespace rlock::etcd
