// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/postgres_url.h"

#include <arpa/inet.h>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>
#include "base/text.h"
#include "store/postgres/libpq.h"

namespace rlock::postgres {
namespace {

constexpr std::string_view create_parameter = "create";

Error bad_url(std::string_view shown, std::string_view why)
{
  return {ErrorCode::usage, "the URL '" + printable(shown) + "' is invalid: " + std::string(why) +
                                " (postgresql://user@host:5432/database)"};
}

std::optional<std::string> decoded(std::string_view text)
{
  std::string all;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] != '%') {
      all += text[i];
    } else if (text.size() - i > 2 &&
               std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr == text.data() + i + 3) {
      all += static_cast<char>(byte);
      i += 2;
    } else {
      return std::nullopt;
    }
  }
  return all;
}

struct Parts {
  std::string user;  // percent-encoded, as it stands in the URL
  std::string password;
  std::string location;                 // "//host:port/database"
  std::vector<std::string> parameters;  // "sslmode=require"

  // Without user and password.
  [[nodiscard]] std::string url() const
  {
    std::string all = "//" + location;
    for (const std::string& each : parameters) {
      all += (&each == &parameters.front() ? "?" : "&") + each;
    }
    return all;
  }
};

// "//user:password@host/database?a=b"
Parts parts_of(std::string_view text)
{
  Parts parts;
  const auto question = std::min(text.find('?'), text.size());
  std::string_view rest = text.substr(std::min(question + 1, text.size()));
  while (!rest.empty()) {
    const auto end = std::min(rest.find('&'), rest.size());
    parts.parameters.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::string_view location = text.substr(2, question - 2);
  const auto slash = std::min(location.find('/'), location.size());
  const auto at = location.substr(0, slash).rfind('@');
  if (at != std::string_view::npos) {
    const std::string_view login = location.substr(0, at);
    const auto colon = std::min(login.find(':'), login.size());
    parts.user = login.substr(0, colon);
    parts.password = login.substr(std::min(colon + 1, login.size()));
    location.remove_prefix(at + 1);
  }
  parts.location = location;
  return parts;
}

// Removes a parameter and returns its value.
std::optional<std::string> take(std::vector<std::string>& parameters, std::string_view name)
{
  const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const std::string& each) {
    return each.starts_with(name) && each.size() > name.size() && each[name.size()] == '=';
  });
  if (found == parameters.end()) {
    return std::nullopt;
  }
  std::string value = found->substr(name.size() + 1);
  parameters.erase(found);
  return value;
}

// The keywords of the URL with their values, as libpq reads them. `shown`: the URL for a message.
using Keywords = std::map<std::string, std::string, std::less<>>;
Result<Keywords> keywords_of(const std::string& url, std::string_view shown)
{
  const auto library = libpq();
  if (!library) {
    return library.error();
  }
  char* why = nullptr;
  PQconninfoOption* const options = (*library)->PQconninfoParse(url.c_str(), &why);
  if (options == nullptr) {
    std::string text = why == nullptr ? "libpq refuses it" : why;
    (*library)->PQfreemem(why);
    std::erase(text, '\n');
    return bad_url(shown, printable(text));
  }
  Keywords found;
  for (const PQconninfoOption* option = options; option->keyword != nullptr; ++option) {
    if (option->val != nullptr) {
      found[option->keyword] = option->val;
    }
  }
  (*library)->PQconninfoFree(options);
  return found;
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

// No host means a unix socket. The text of an address counts only if it is one: 127.0.0.1.example is a name.
bool is_this_host(const std::string& host)
{
  in_addr address{};
  const bool is_loopback = ::inet_pton(AF_INET, host.c_str(), &address) == 1 && host.starts_with("127.");
  return host.empty() || host[0] == '/' || host[0] == '@' || host == "localhost" || host == "::1" || is_loopback;
}

// `hosts`: separated by commas.
bool are_this_host(std::string_view hosts)
{
  for (bool is_last = false; !is_last;) {
    const auto end = std::min(hosts.find(','), hosts.size());
    if (!is_this_host(std::string(hosts.substr(0, end)))) {
      return false;
    }
    is_last = end == hosts.size();
    hosts.remove_prefix(std::min(end + 1, hosts.size()));
  }
  return true;
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
  const auto colon = url.find(':');
  const std::string_view text = url.substr(std::min(colon + 1, url.size()));
  if (!text.starts_with("//")) {
    return bad_url(url.substr(0, colon), "it has no //");
  }
  Parts parts = parts_of(text);
  const auto in_parameter = take(parts.parameters, "password");
  const auto create = take(parts.parameters, create_parameter);
  const auto user = decoded(parts.user);
  const auto password = decoded(in_parameter ? *in_parameter : parts.password);
  const std::string shown = std::string(scheme) + ":" + parts.url();
  if (!user || !password) {
    return bad_url(shown, "a % is not followed by two hexadecimal digits (write %25)");
  }
  if (take(parts.parameters, "sslpassword")) {
    return bad_url(std::string(scheme) + ":" + parts.url(),
                   "sslpassword would be seen by others (use a key without a passphrase)");
  }
  if (create && *create != "no" && *create != "yes") {
    return bad_url(shown, "create is yes or no");
  }
  const auto keywords = keywords_of(std::string(scheme) + ":" + parts.url(), shown);
  if (!keywords) {
    return keywords.error();
  }
  if (create) {
    parts.parameters.push_back(std::string(create_parameter) + "=" + *create);
  }
  Endpoint endpoint;
  endpoint.scheme = scheme;
  endpoint.kind = Endpoint::Kind::other;
  endpoint.path = parts.url();
  endpoint.user = *user;
  endpoint.password = *password;
  return endpoint;
}

ConnectionSpec connection_spec(const Endpoint& endpoint)
{
  Parts parts = parts_of(endpoint.path);
  const auto create = take(parts.parameters, create_parameter);
  const std::string url = std::string(scheme) + ":" + parts.url();
  const auto keywords = keywords_of(url, url);
  return {.url = url,
          .user = endpoint.user,
          .password = endpoint.password,
          .verifies_tls = !keywords || must_verify(*keywords),
          .creates_tables = create.value_or("yes") == "yes"};
}

}  // namespace rlock::postgres
