// SPDX-License-Identifier: Apache-2.0
#include "redis/url.h"

#include <algorithm>
#include <charconv>
#include "base/server_schemes.h"
#include "base/text.h"
#include "net/endpoint.h"
#include "net/url_parts.h"

namespace rlock {
namespace {

// Those of Redis, and how the others begin.
std::string good_forms()
{
  std::string others;
  for (const ServerScheme& scheme : server_schemes) {
    others += scheme.engine == server_schemes.front().engine ? "" : ", " + std::string(scheme.name) + "://";
  }
  return "(valid ones: redis://host:6379/0, rediss:// with TLS, redis+cluster://host:7000,host:7001, "
         "redis+sentinel://host:26379/master, unix:///path/to/socket, local:" +
         others + "; see rlock-servers(7))";
}

constexpr std::string_view one_server =
    "this names one server (several -S form a quorum; redis+sentinel://h1,h2/mymaster and redis+cluster://h1,h2 name a "
    "group)";

Result<Endpoint> parse_redis(std::string_view url, std::string_view rest)
{
  Endpoint endpoint;
  if (!take_credentials(rest, endpoint)) {
    return bad_url(url, escape_percent);
  }
  const auto slash = std::min(rest.find('/'), rest.size());
  HostPort at{.host = {}, .port = endpoint.port};
  if (rest.substr(0, slash).find(',') != std::string_view::npos) {
    return bad_url(url, one_server);
  }
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
  for (const std::string_view host : split(rest.substr(0, slash), ',')) {
    HostPort node;
    if (const auto wrong = take_authority(host, node)) {
      return bad_url(url, *wrong);
    }
    cluster.nodes.push_back(std::move(node));
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
  if (is_bare_host(url.substr(0, url.find(',')))) {
    return bad_url(url, one_server);
  }
  const auto colon = url.find("://");
  const std::string_view front = url.substr(0, colon == std::string_view::npos ? 0 : colon);
  const std::string_view scheme = is_scheme(front) ? front : "";
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
  return bad_url(
      url, (scheme.empty() ? "it does not begin with scheme:// " : "rlock does not know this scheme ") + good_forms());
}

namespace {

std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t max)
{
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && number <= max ? std::optional(number) : std::nullopt;
}

// Whether the user and password have a character that ends the part of a URL where they stand.
bool has_raw_login(std::string_view url)
{
  const auto scheme = url.find("://");
  const std::string_view rest = scheme == std::string_view::npos ? url : url.substr(scheme + 3);
  const auto end = rest.find_first_of("/?#");
  const auto at = rest.find('@');
  return end != 0 && end < at && at != std::string_view::npos;
}

}  // namespace

Error bad_url(std::string_view url, std::string_view why)
{
  constexpr std::string_view raw_login =
      "in a user or password write / ? # @ and % as %2F %3F %23 %40 and %25, or give the password by --password-file";
  return {ErrorCode::usage,
          "bad server URL '" + quotable_url(url) + "': " + std::string(has_raw_login(url) ? raw_login : why)};
}

std::optional<unsigned> parse_db(std::string_view text)
{
  constexpr std::uint64_t max_db = 0x7fffffff;
  const auto number = parse_number(text, max_db);
  return number ? std::optional(static_cast<unsigned>(*number)) : std::nullopt;
}

bool take_credentials(std::string_view& rest, Endpoint& endpoint)
{
  const auto at = rest.substr(0, rest.find('/')).rfind('@');
  if (at == std::string_view::npos) {
    return true;
  }
  const std::string_view both = rest.substr(0, at);
  rest.remove_prefix(at + 1);

  const auto colon = std::min(both.find(':'), both.size());
  const auto user = percent_decoded(both.substr(0, colon));
  const auto password = percent_decoded(both.substr(std::min(colon + 1, both.size())));
  if (!user || !password) {
    return false;
  }
  endpoint.user = *user;
  endpoint.password = *password;
  return true;
}

std::optional<std::string_view> take_authority(std::string_view authority, HostPort& at)
{
  const bool bracketed = authority.starts_with('[');
  const auto host_end = bracketed ? authority.find(']') : authority.find(':');
  const std::string_view host = authority.substr(bracketed ? 1 : 0, host_end - (bracketed ? 1 : 0));
  std::string_view port = host_end == std::string_view::npos ? "" : authority.substr(host_end);
  if (!bracketed && port.find(':', 1) != std::string_view::npos) {
    return "an IPv6 address needs brackets, as in redis://[::1]:6379";
  }
  if (host.empty()) {
    return "the host is missing";
  }
  if (bracketed && (port.empty() || (is_host_name(host) || !is_host(host)))) {
    return "the brackets must contain an IPv6 address, as in redis://[::1]:6379";
  }
  if (!bracketed && !is_host_name(host)) {
    return "the host name is invalid (escape / and @ in a password as %2F and %40, or give it by --password-file)";
  }
  at.host = bracketed ? host_in_brackets(host) : std::string(host);

  port.remove_prefix(bracketed ? 1 : 0);
  if (port.empty()) {
    return std::nullopt;
  }
  const auto number = port.starts_with(':') ? parse_number(port.substr(1), 65535) : std::nullopt;
  if (number.value_or(0) == 0) {
    return "the port must be 1 to 65535";
  }
  at.port = static_cast<std::uint16_t>(*number);
  return std::nullopt;
}

// redis+sentinel://[user[:password]@]host[:port][,host[:port]...]/master[/db][?parameters]
namespace {

constexpr std::uint16_t sentinel_port = 26379;
constexpr std::string_view good_form = "as in redis+sentinel://host1:26379,host2:26379/mymaster";

// Removes the front of `text`, up to and including the separator, and returns it without the separator.
std::string_view take_until(char separator, std::string_view& text)
{
  const std::string_view front = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), front.size() + 1));
  return front;
}

// Returns what is wrong, or nullopt.
std::optional<std::string_view> take_hosts(std::string_view list, std::vector<HostPort>& hosts)
{
  do {
    HostPort at{.host = {}, .port = sentinel_port};
    if (const auto wrong = take_authority(take_until(',', list), at)) {
      return wrong;
    }
    if (std::find(hosts.begin(), hosts.end(), at) == hosts.end()) {
      hosts.push_back(at);
    }
  } while (!list.empty());
  return std::nullopt;
}

bool take_switch(std::string_view value, std::optional<TlsFiles>& tls)
{
  if (value == "yes") {
    tls.emplace();
  } else {
    tls.reset();
  }
  return value == "yes" || value == "no";
}

// Reads one `name=value`; false: it is unknown or invalid.
bool take_parameter(std::string_view parameter, Sentinels& sentinels)
{
  const std::string_view name = take_until('=', parameter);
  if (name == "sentinel_tls") {
    return take_switch(parameter, sentinels.tls);
  }
  const auto value = percent_decoded(parameter);
  if (!value || (name != "sentinel_username" && name != "sentinel_password")) {
    return false;
  }
  (name == "sentinel_username" ? sentinels.user : sentinels.password) = *value;
  return true;
}

}  // namespace

Result<Endpoint> parse_sentinel(std::string_view url, std::string_view rest, bool tls)
{
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::sentinel;
  Sentinels& sentinels = endpoint.sentinels;
  if (tls) {
    endpoint.tls.emplace();
    sentinels.tls.emplace();
  }
  if (!take_credentials(rest, endpoint)) {
    return bad_url(url, escape_percent);
  }
  std::string_view path = take_until('?', rest);
  if (const auto wrong = take_hosts(take_until('/', path), sentinels.hosts)) {
    return bad_url(url, *wrong);
  }
  sentinels.master = take_until('/', path);
  if (!is_host_name(sentinels.master)) {  // Sentinel allows the same characters
    return bad_url(url, "the name of the master must follow the sentinels, " + std::string(good_form));
  }
  const auto db = parse_db(path.empty() ? "0" : path);
  if (!db) {
    return bad_url(url, "after the master only a db number may follow, " + std::string(good_form) + "/0");
  }
  endpoint.db = *db;
  while (!rest.empty()) {
    if (!take_parameter(take_until('&', rest), sentinels)) {
      return bad_url(url,
                     "its parameters are sentinel_username, sentinel_password and sentinel_tls=yes or no "
                     "(a % must be written %25)");
    }
  }
  return endpoint;
}

}  // namespace rlock
