// SPDX-License-Identifier: Apache-2.0
// redis+sentinel://[user[:password]@]host[:port][,host[:port]...]/master[/db][?parameters]
#include "server/url_parts.h"

#include <algorithm>

namespace rlock {
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
