// SPDX-License-Identifier: Apache-2.0
#include "store/zookeeper/zookeeper_url.h"

#include <algorithm>
#include <charconv>
#include "base/text.h"
#include "net/url_parts.h"
#include "store/zookeeper/zookeeper_layout.h"

namespace rlock::zookeeper {
namespace {

constexpr std::string_view good_form = "zookeeper://user@host1:2181,host2:2181/chroot";

bool is_host_byte(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

// "host", "host:port", "[::1]:port". nullopt: none of them.
std::optional<HostPort> host_of(std::string_view text)
{
  HostPort at{.host = {}, .port = default_port};
  const bool has_brackets = text.starts_with('[');
  const auto end = has_brackets ? text.find(']') : text.find(':');
  at.host = text.substr(has_brackets ? 1 : 0, end == std::string_view::npos ? end : end - (has_brackets ? 1 : 0));
  std::string_view port = end == std::string_view::npos ? "" : text.substr(end + (has_brackets ? 1 : 0));
  const bool is_address = std::ranges::all_of(at.host, [](char c) { return is_host_byte(c) || c == ':' || c == '%'; });
  const bool is_name = std::ranges::all_of(at.host, is_host_byte);
  if (at.host.empty() || !(has_brackets ? is_address && end != std::string_view::npos : is_name)) {
    return std::nullopt;
  }
  if (port.empty()) {
    return at;
  }
  port.remove_prefix(1);
  const auto [rest, error] = std::from_chars(port.data(), port.data() + port.size(), at.port);
  const bool is_port = text[text.size() - port.size() - 1] == ':' && error == std::errc{} &&
                       rest == port.data() + port.size() && at.port != 0;
  return is_port ? std::optional(at) : std::nullopt;
}

// Empty: one of them is invalid.
std::vector<HostPort> hosts_of(std::string_view list)
{
  std::vector<HostPort> hosts;
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = list.find(',');
    const auto host = host_of(list.substr(0, comma));
    if (!host) {
      return {};
    }
    hosts.push_back(*host);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return hosts;
}

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
  const auto read = read_server_url(url, good_form);
  if (!read) {
    return read.error();
  }
  const auto& [own_scheme, user, password, parts] = *read;
  const auto chroot = chroot_in(parts.location);
  if (!chroot) {
    return invalid_url(url, bad_escape, good_form);
  }
  if (!parts.parameters.empty()) {
    const std::string& first = parts.parameters.front();
    return invalid_url(url, "there is no parameter " + printable(first.substr(0, first.find('='))), good_form);
  }
  if (hosts_of(hosts_in(parts.location)).empty()) {
    return invalid_url(url, "a host or its port is missing or invalid", good_form);
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
  Endpoint endpoint;
  endpoint.scheme = own_scheme;
  endpoint.kind = Endpoint::Kind::other;
  endpoint.path = "//" + parts.location;
  endpoint.user = user;
  endpoint.password = password;
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
  spec.is_this_host = true;
  for (const HostPort& at : hosts_of(hosts_in(location))) {
    Endpoint& member = spec.members.emplace_back();
    member.scheme = scheme;
    member.host = at.host;
    member.port = at.port;
    member.tls = endpoint.tls;
    member.password_file = endpoint.password_file;
    spec.is_this_host = spec.is_this_host && is_this_host(at.host);
  }
  return spec;
}

}  // namespace rlock::zookeeper
