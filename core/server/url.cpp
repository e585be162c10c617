// SPDX-License-Identifier: Apache-2.0
#include "server/url.h"

#include "base/text.h"
#include "net/socket_path.h"
#include "server/url_parts.h"

#include <algorithm>

namespace rlock {
namespace {

constexpr std::string_view good_forms =
    "(valid ones: redis://host:6379/0, rediss:// with TLS, redis+cluster://host:7000,host:7001, "
    "redis+sentinel://host:26379/master, "
    "unix:///path/to/socket, local:)";

Result<Endpoint> parse_redis(std::string_view url, std::string_view rest)
{
  Endpoint endpoint;
  if (!take_credentials(rest, endpoint)) {
    return bad_url(url, escape_percent);
  }
  const auto slash = std::min(rest.find('/'), rest.size());
  HostPort at{.host = {}, .port = endpoint.port};
  if (const auto wrong = take_authority(rest.substr(0, slash), at)) {
    return bad_url(url, *wrong);
  }
  endpoint.host = at.host;
  endpoint.port = at.port;
  const std::string_view db = rest.substr(std::min(slash + 1, rest.size()));
  if (db.empty()) {
    return endpoint;
  }
  const auto number = parse_db(db);
  if (!number) {
    return bad_url(url, "after the host only a db number may follow, as in redis://host:6379/0");
  }
  endpoint.db = *number;
  return endpoint;
}

// `user:password@` is for all nodes.
Result<Endpoint> parse_cluster(std::string_view url, std::string_view rest)
{
  Endpoint cluster;
  cluster.kind = Endpoint::Kind::cluster;
  if (!take_credentials(rest, cluster)) {
    return bad_url(url, escape_percent);
  }
  const auto slash = std::min(rest.find('/'), rest.size());
  if (const std::string_view db = rest.substr(slash); !db.empty() && db != "/" && db != "/0") {
    return bad_url(url, "a cluster has db 0 only (leave out the text after the hosts)");
  }
  std::string_view hosts = rest.substr(0, slash);
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = hosts.find(',');
    HostPort node;
    if (const auto wrong = take_authority(hosts.substr(0, comma), node)) {
      return bad_url(url, *wrong);
    }
    cluster.nodes.push_back(std::move(node));
    hosts.remove_prefix(std::min(comma, hosts.size() - 1) + 1);
  }
  return cluster;
}

Result<Endpoint> parse_unix(std::string_view url, std::string_view rest)
{
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  if (!take_credentials(rest, endpoint)) {
    return bad_url(url, escape_percent);
  }
  const auto question = std::min(rest.find('?'), rest.size());
  const auto path = percent_decoded(rest.substr(0, question));
  if (!path || std::any_of(path->begin(), path->end(), is_control)) {
    return bad_url(url, "a % in the path must be written %25, and control characters cannot be");
  }
  if (!path->starts_with('/') || path->size() == 1) {
    return bad_url(url, "the path must be absolute, as in unix:///path/to/socket");
  }
  if (!fits_socket_address(*path)) {
    return bad_url(url, socket_path_too_long());
  }
  endpoint.path = *path;

  const std::string_view query = rest.substr(question);
  if (query.empty()) {
    return endpoint;
  }
  const auto number = query.starts_with("?db=") ? parse_db(query.substr(4)) : std::nullopt;
  if (!number) {
    return bad_url(url, "after the path only ?db=N may follow, as in unix:///path/to/socket?db=0");
  }
  endpoint.db = *number;
  return endpoint;
}

// "host" or "host:port".
bool is_bare_host(std::string_view text)
{
  const std::string_view host = text.substr(0, text.find(':'));
  const std::string_view port = text.substr(std::min(host.size() + 1, text.size()));
  const bool has_colon = host.size() < text.size();
  return is_host_name(host) &&
         (!has_colon ||
          (!port.empty() && std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; })));
}

}  // namespace

Result<Endpoint> parse_url(std::string_view url)
{
  if (std::any_of(url.begin(), url.end(), is_control)) {
    return bad_url(url, "it contains a control character");
  }
  if (url.starts_with("local:")) {
    if (url != "local:") {
      return bad_url(url, "nothing may follow local:");
    }
    Endpoint endpoint;
    endpoint.kind = Endpoint::Kind::local;
    return endpoint;
  }
  if (is_bare_host(url)) {
    return parse_redis(url, url);
  }
  const auto colon = url.find("://");
  const std::string_view scheme = url.substr(0, colon == std::string_view::npos ? 0 : colon);
  const std::string_view rest = scheme.empty() ? "" : url.substr(colon + 3);
  if (scheme == "redis" || scheme == "rediss") {
    auto endpoint = parse_redis(url, rest);
    if (endpoint && scheme == "rediss") {
      endpoint->tls.emplace();
    }
    return endpoint;
  }
  if (scheme == "unix") {
    return parse_unix(url, rest);
  }
  if (scheme == "redis+sentinel" || scheme == "rediss+sentinel") {
    return parse_sentinel(url, rest, scheme == "rediss+sentinel");
  }
  if (scheme == "redis+cluster" || scheme == "rediss+cluster") {
    auto cluster = parse_cluster(url, rest);
    if (cluster && scheme == "rediss+cluster") {
      cluster->tls.emplace();
    }
    return cluster;
  }
  return bad_url(url, (scheme.empty() ? "it does not begin with scheme:// " : "rlock does not know this scheme ") +
                          std::string(good_forms));
}

}  // namespace rlock
