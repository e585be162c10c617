// SPDX-License-Identifier: Apache-2.0
#include "stores/etcd/etcd_url.h"

#include <algorithm>
#include <utility>
#include "net/url_parts.h"

namespace rlock::etcd {
namespace {

// "host:2379,other/prefix". The text of the Error is the reason why the URL is invalid.
struct Location {
  std::vector<HostPort> hosts;
  std::string prefix;
};
Result<Location> location_in(std::string_view text)
{
  const auto slash = std::min(text.find('/'), text.size());
  ASSIGN_OR_RETURN(auto hosts, host_list(text.substr(0, slash), default_port));
  auto prefix = percent_decoded(text.substr(std::min(slash + 1, text.size())));
  if (!prefix || prefix->find('\0') != std::string::npos) {
    return Error{ErrorCode::usage, std::string(prefix ? "the prefix has a byte 0" : bad_escape)};
  }
  while (prefix->ends_with('/')) {
    prefix->pop_back();
  }
  return Location{.hosts = std::move(hosts), .prefix = prefix->empty() ? std::string(default_prefix) : *prefix};
}

}  // namespace

Result<Endpoint> parse_etcd_url(std::string_view url)
{
  const std::string name(url.substr(0, url.find(':')));
  ASSIGN_OR_RETURN(const auto read, read_server_url(url, name + "://user@host:2379,other/prefix"));
  const auto invalid = [&](std::string_view why) {
    return invalid_url(url, why, name + "://user@host:2379,other/prefix");
  };
  if (read.user.empty() && !read.password.empty()) {
    return invalid("a password needs a user");
  }
  if (!read.parts.parameters.empty()) {
    return invalid("it has no parameters");
  }
  if (const auto location = location_in(read.parts.location); !location) {
    return invalid(location.error().text);
  }
  Endpoint endpoint = other_endpoint(read);
  if (name == tls_scheme) {
    endpoint.tls.emplace();
  }
  return endpoint;
}

ConnectionSpec connection_spec(const Endpoint& endpoint)
{
  const auto location = location_in(url_parts(endpoint.path).location);
  ConnectionSpec spec;
  spec.url = endpoint.shown();
  spec.user = endpoint.user;
  spec.password = endpoint.password;
  if (location) {
    spec.prefix = location->prefix;
    spec.members = members_at(location->hosts, scheme, endpoint);
  }
  return spec;
}

}  // namespace rlock::etcd
