// SPDX-License-Identifier: Apache-2.0
#include "stores/mysql/mysql_url.h"

#include <algorithm>
#include <array>
#include <utility>
#include "base/text.h"
#include "engine/shared_table.h"
#include "net/url_parts.h"

namespace rlock::mysql {
namespace {

// A specification, or why there is none.
struct Parsed {
  ConnectionSpec spec;
  std::string why;  // empty: nothing is wrong
};

// "host:3306,other/database"
std::string set_location(ConnectionSpec& spec, std::string_view location)
{
  const auto slash = std::min(location.find('/'), location.size());
  const auto database = percent_decoded(location.substr(std::min(slash + 1, location.size())));
  if (!database || database->empty()) {
    return std::string(database ? "it names no database" : bad_escape);
  }
  spec.database = *database;
  if (slash > 0) {
    auto hosts = host_list(location.substr(0, slash), 0);
    if (!hosts) {
      return hosts.error().text;
    }
    spec.hosts = *std::move(hosts);
  }
  return "";
}

// What MySQL also knows: `preferred` is no protection, and libmariadb cannot check the signature without the name (verify_ca).
std::string set_ssl_mode(ConnectionSpec& spec, std::string mode)
{
  std::ranges::transform(mode, mode.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (mode != "disabled" && mode != "required" && mode != "verify_identity") {
    return "ssl-mode is disabled, required or verify_identity";
  }
  spec.uses_tls = mode != "disabled";
  spec.verifies_tls = mode == "verify_identity";
  return "";
}

std::string set_parameters(ConnectionSpec& spec, UrlParts parts)
{
  const std::array<std::pair<std::string_view, std::string*>, 5> texts{{{"socket", &spec.socket},
                                                                        {"defaults-file", &spec.defaults_file},
                                                                        {"ssl-ca", &spec.ssl_ca},
                                                                        {"ssl-cert", &spec.ssl_cert},
                                                                        {"ssl-key", &spec.ssl_key}}};
  for (const auto& [name, text] : texts) {
    const auto value = percent_decoded(parts.take(name).value_or(""));
    if (!value) {
      return std::string(bad_escape);
    }
    *text = *value;
  }
  const auto ssl_mode = parts.take("ssl-mode");
  const auto table = parts.take(record::table_parameter);
  if (table && !record::is_table_name(*table)) {
    return std::string(record::no_table_name);
  }
  spec.table = table.value_or("");
  // The table of another program is changed only on request.
  const std::string create = parts.take("create").value_or(spec.table.empty() ? "yes" : "no");
  spec.creates_tables = create != "no";
  if (create != "yes" && create != "no") {
    return "create is yes or no";
  }
  if (!parts.parameters.empty()) {
    const std::string& first = parts.parameters.front();
    return "it has no parameter '" + printable(first.substr(0, first.find('='))) + "', or it is given twice";
  }
  if (!spec.socket.empty() && (spec.hosts.size() > 1 || (!spec.hosts.empty() && spec.hosts[0].host != "localhost"))) {
    return "a socket is on this host (leave out the host)";
  }
  if (spec.hosts.empty()) {
    spec.hosts.push_back({.host = "localhost", .port = 0});
  }
  spec.uses_tls = spec.verifies_tls =
      !std::ranges::all_of(spec.hosts, [](const HostPort& each) { return is_this_host(each.host); });
  return ssl_mode ? set_ssl_mode(spec, *ssl_mode) : "";
}

Parsed parsed(const UrlParts& parts)
{
  Parsed all;
  all.why = set_location(all.spec, parts.location);
  if (all.why.empty()) {
    all.why = set_parameters(all.spec, parts);
  }
  return all;
}

}  // namespace

Result<Endpoint> parse_mysql_url(std::string_view url)
{
  const std::string name(url.substr(0, url.find(':')));
  const std::string good_form = name + "://user@host:3306/database";
  ASSIGN_OR_RETURN(auto read, read_server_url(url, good_form));
  UrlParts& parts = read.parts;
  if (parts.take("password")) {
    return invalid_url(url, "the password stands behind the user", good_form);
  }
  if (const Parsed all = parsed(parts); !all.why.empty()) {
    return invalid_url(url, all.why, good_form);
  }
  return other_endpoint(read);
}

ConnectionSpec connection_spec(const Endpoint& endpoint)
{
  ConnectionSpec spec = parsed(url_parts(endpoint.path)).spec;
  spec.url = endpoint.shown();
  spec.user = endpoint.user;
  spec.password = endpoint.password;
  return spec;
}

}  // namespace rlock::mysql
