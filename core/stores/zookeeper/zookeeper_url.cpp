// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/zookeeper_url.h"

#include <algorithm>
#include "base/text.h"
#include "net/url_parts.h"
#include "stores/zookeeper/zookeeper_layout.h"

namespace rlock::zookeeper {
namespace {

constexpr std::string_view good_form = "zookeeper://user@host1:2181,host2:2181/chroot";

// ZooKeeper keeps /zookeeper for itself. The parts of a path are not "", "." or "..".
bool is_chroot(std::string_view path) { return path.find_first_of("?#") == std::string_view::npos && is_path(path); }

std::string_view without_last_slash(std::string_view path)
{
  return path.substr(0, path.size() - (path.ends_with('/') ? 1 : 0));
}

std::string_view hosts_in(std::string_view location) { return location.substr(0, location.find('/')); }

std::optional<std::string> chroot_in(std::string_view location)
{
  return percent_decoded(without_last_slash(location.substr(hosts_in(location).size())));
}

}  // namespace

Result<Endpoint> parse_zookeeper_url(std::string_view url)
{
  ASSIGN_OR_RETURN(const auto read, read_server_url(url, good_form));
  const auto& [own_scheme, user, password, parts] = read;
  const auto chroot = chroot_in(parts.location);
  if (!chroot) {
    return invalid_url(url, bad_escape, good_form);
  }
  if (!parts.parameters.empty()) {
    const std::string& first = parts.parameters.front();
    return invalid_url(url, "there is no parameter " + printable(first.substr(0, first.find('='))), good_form);
  }
  if (const auto hosts = host_list(hosts_in(parts.location), default_port); !hosts) {
    return invalid_url(url, hosts.error().text, good_form);
  }
  if (!is_chroot(*chroot)) {
    return invalid_url(url, "the path after the hosts names no node for locks", good_form);
  }
  if (user.empty() && !password.empty()) {
    return invalid_url(url, "a password needs a user", good_form);
  }
  if (user.find(':') != std::string::npos) {
    return invalid_url(url, "the user has a colon, which ends the user of a digest", good_form);
  }
  Endpoint endpoint = other_endpoint(read);
  if (own_scheme == tls_scheme) {
    endpoint.tls.emplace();
  }
  return endpoint;
}

ConnectionSpec connection_spec(const Endpoint& endpoint)
{
  const std::string_view location = std::string_view(endpoint.path).substr(2);
  ConnectionSpec spec;
  spec.url = endpoint.shown();
  spec.chroot = chroot_in(location).value_or("");
  spec.user = endpoint.user;
  spec.password = endpoint.password;
  spec.uses_tls = endpoint.tls.has_value();
  if (const auto hosts = host_list(hosts_in(location), default_port)) {
    spec.members = members_at(*hosts, scheme, endpoint);
  }
  spec.is_this_host = std::ranges::all_of(spec.members, [](const Endpoint& each) { return is_this_host(each.host); });
  return spec;
}

}  // namespace rlock::zookeeper
