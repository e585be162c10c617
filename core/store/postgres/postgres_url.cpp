// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/postgres_url.h"

#include <algorithm>
#include <charconv>
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

  [[nodiscard]] std::string url(bool with_user) const
  {
    std::string all = "//" + (with_user && !user.empty() ? user + "@" : "") + location;
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

Result<Done> check_by_libpq(const std::string& url, std::string_view shown)
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
  (*library)->PQconninfoFree(options);
  return Done{};
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
  const std::string shown = std::string(scheme) + ":" + parts.url(false);
  if (!user || !password) {
    return bad_url(shown, "a % is not followed by two hexadecimal digits (write %25)");
  }
  if (create && *create != "no" && *create != "yes") {
    return bad_url(shown, "create is yes or no");
  }
  if (const auto checked = check_by_libpq(std::string(scheme) + ":" + parts.url(true), shown); !checked) {
    return checked.error();
  }
  if (create) {
    parts.parameters.push_back(std::string(create_parameter) + "=" + *create);
  }
  Endpoint endpoint;
  endpoint.scheme = scheme;
  endpoint.kind = Endpoint::Kind::other;
  endpoint.path = parts.url(true);
  endpoint.user = *user;
  endpoint.password = *password;
  return endpoint;
}

ConnectionSpec connection_spec(const Endpoint& endpoint)
{
  Parts parts = parts_of(endpoint.path);
  const auto create = take(parts.parameters, create_parameter);
  return {.url = std::string(scheme) + ":" + parts.url(true),
          .password = endpoint.password,
          .creates_tables = create.value_or("yes") == "yes"};
}

}  // namespace rlock::postgres
