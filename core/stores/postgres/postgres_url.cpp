// SPDX-License-Identifier: Apache-2.0
#include "stores/postgres/postgres_url.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <vector>
#include "base/text.h"
#include "engine/shared_table.h"
#include "net/url_parts.h"
#include "stores/postgres/libpq.h"

namespace rlock::postgres {
namespace {

constexpr std::string_view create_parameter = "create";

constexpr std::string_view good_form = "postgresql://user@host:5432/database";

// The keywords of the URL with their values, as libpq reads them. `url`: without user and password.
using Keywords = std::map<std::string, std::string, std::less<>>;
Result<Keywords> keywords_of(const std::string& url)
{
  ASSIGN_OR_RETURN(const auto library, libpq());
  char* why = nullptr;
  PQconninfoOption* const options = library->PQconninfoParse(url.c_str(), &why);
  if (options == nullptr) {
    std::string text = why == nullptr ? "libpq refuses it" : why;
    library->PQfreemem(why);
    std::erase(text, '\n');
    return invalid_url(url, printable(text), good_form);
  }
  Keywords found;
  for (const PQconninfoOption* option = options; option->keyword != nullptr; ++option) {
    if (option->val != nullptr) {
      found[option->keyword] = option->val;
    }
  }
  library->PQconninfoFree(options);
  return found;
}

// libpq looks at a port only when it connects. A name of a parameter may have escapes, so that its value was not taken out.
std::string fault_of(const Keywords& keywords)
{
  for (const auto& [name, value] : keywords) {
    if (name == "password") {
      return "the name of the parameter password has an escape";
    }
    if (name.find("password") != std::string::npos || name.find("secret") != std::string::npos ||
        name.starts_with("scram_")) {
      return name + " would be seen by others (use a file, or a key without a passphrase)";
    }
  }
  const auto ports = keywords.find("port");
  const auto is_wrong = [](std::string_view port) { return !port.empty() && !host_port("h:" + std::string(port)); };
  const bool has_wrong = ports != keywords.end() && std::ranges::any_of(split(ports->second, ','), is_wrong);
  return has_wrong ? "a port is not from 1 to 65535" : "";
}

std::optional<std::string> variable(const char* name)
{
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread calls setenv
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// The value in the URL, or else of the variable that libpq reads.
std::string value_of(const Keywords& keywords, std::string_view keyword, const char* name)
{
  const auto found = keywords.find(keyword);
  return found != keywords.end() ? found->second : variable(name).value_or("");
}

std::vector<std::string> listed(std::string_view text)
{
  const auto parts = split(text, ',');
  return {parts.begin(), parts.end()};
}

// `hosts`: separated by commas.
bool are_this_host(std::string_view hosts) { return std::ranges::all_of(listed(hosts), is_this_host); }

// A parameter of one host cannot take back that of all: an empty text is no value to libpq. A service file may name hosts. Some
// parameters have libpq look at all hosts before it chooses one.
std::vector<Host> hosts_of(const Keywords& keywords)
{
  constexpr std::string_view default_port = "5432";
  const auto names = listed(value_of(keywords, "host", "PGHOST"));
  const auto addresses = listed(value_of(keywords, "hostaddr", "PGHOSTADDR"));
  auto ports = listed(value_of(keywords, "port", "PGPORT"));
  const std::size_t count = std::max(names.size(), addresses.size());
  const auto is_none = [](const std::vector<std::string>& parts) { return parts.size() == 1 && parts.front().empty(); };
  const auto names_each = [&](const std::vector<std::string>& parts) {
    return is_none(parts) || (parts.size() == count && std::ranges::count(parts, std::string()) == 0);
  };
  const auto attributes = keywords.find("target_session_attrs");
  const bool libpq_chooses = !value_of(keywords, "service", "PGSERVICE").empty() ||
                             (attributes != keywords.end() && attributes->second == "prefer-standby") ||
                             !value_of(keywords, "load_balance_hosts", "PGLOADBALANCEHOSTS").empty();
  if (count == 1 || libpq_chooses || !names_each(names) || !names_each(addresses) ||
      (ports.size() != 1 && ports.size() != count)) {
    return {};
  }
  ports.resize(count, ports.front());
  std::vector<Host> hosts;
  for (std::size_t i = 0; i < count; ++i) {
    hosts.push_back({.name = is_none(names) ? "" : names[i],
                     .address = is_none(addresses) ? "" : addresses[i],
                     .port = ports[i].empty() ? std::string(default_port) : ports[i]});
  }
  return hosts;
}

// libpq connects to hostaddr where it is given; host is then the name in the certificate.
bool must_verify(const Keywords& keywords)
{
  const std::string address = value_of(keywords, "hostaddr", "PGHOSTADDR");
  const bool stays = are_this_host(address.empty() ? value_of(keywords, "host", "PGHOST") : address);
  const bool user_has_chosen =
      !value_of(keywords, "sslmode", "PGSSLMODE").empty() || !value_of(keywords, "service", "PGSERVICE").empty();
  return !stays && !user_has_chosen;
}

}  // namespace

Result<Endpoint> parse_postgres_url(std::string_view url)
{
  ASSIGN_OR_RETURN(auto read, read_server_url(url, good_form));
  UrlParts& parts = read.parts;
  if (const std::string why = repeated_parameter(parts, {"password", create_parameter, record::table_parameter});
      !why.empty()) {
    return invalid_url(url, why, good_form);
  }
  const auto password = percent_decoded(parts.take("password").value_or(""));
  const auto create = parts.take(create_parameter);
  const auto table = parts.take(record::table_parameter);
  if (!password) {
    return invalid_url(url, bad_escape, good_form);
  }
  if (create && *create != "no" && *create != "yes") {
    return invalid_url(url, "create is yes or no", good_form);
  }
  if (table && !record::is_table_name(*table)) {
    return invalid_url(url, record::no_table_name, good_form);
  }
  ASSIGN_OR_RETURN(const auto keywords, keywords_of(std::string(scheme) + ":" + parts.without_login()));
  if (const std::string why = fault_of(keywords); !why.empty()) {
    return invalid_url(url, why, good_form);
  }
  if (table) {
    parts.parameters.push_back(std::string(record::table_parameter) + "=" + *table);
  }
  if (create) {
    parts.parameters.push_back(std::string(create_parameter) + "=" + *create);
  }
  Endpoint endpoint = other_endpoint(read);
  endpoint.scheme = scheme;
  endpoint.password = password->empty() ? read.password : *password;
  return endpoint;
}

ConnectionSpec connection_spec(const Endpoint& endpoint)
{
  UrlParts parts = url_parts(endpoint.path);
  const auto create = parts.take(create_parameter);
  const auto table = parts.take(record::table_parameter);
  const std::string url = std::string(scheme) + ":" + parts.without_login();
  const auto keywords = keywords_of(url);
  return {.url = url,
          .user = endpoint.user,
          .password = endpoint.password,
          .verifies_tls = !keywords || must_verify(*keywords),
          // The table of another program is changed only on request.
          .creates_tables = create.value_or(table ? "no" : "yes") == "yes",
          .table = table.value_or(""),
          .hosts = keywords ? hosts_of(*keywords) : std::vector<Host>()};
}

}  // namespace rlock::postgres
