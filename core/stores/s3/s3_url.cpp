// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_url.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include "base/duration.h"
#include "base/hex.h"
#include "base/text.h"
#include "net/url_parts.h"

namespace rlock::s3 {
namespace {

constexpr std::string_view good_form = "s3://bucket/prefix?region=eu-central-1";

constexpr char escape = '~';

// RFC 3986: stands in a URL, and in what is signed, as it is.
bool is_unreserved(char c)
{
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("-_.~").find(c) != std::string_view::npos;
}

bool is_bucket(std::string_view name)
{
  constexpr std::size_t shortest = 3, longest = 63;
  return name.size() >= shortest && name.size() <= longest && name.front() != '.' && name.front() != '-' &&
         std::ranges::all_of(name,
                             [](char c) { return (c >= 'a' && c <= 'z') || is_digit(c) || c == '.' || c == '-'; });
}

bool is_prefix(std::string_view text)
{
  constexpr std::size_t longest = 500;
  return text.size() <= longest && text.find("//") == std::string_view::npos &&
         ("/" + std::string(text) + "/").find("/.") == std::string::npos &&
         std::ranges::all_of(text, [](char c) { return is_unreserved(c) || c == '/'; });
}

bool is_word(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_unreserved); }

// "https://host:port". Amazon's endpoints and those of other stores have no path.
bool is_endpoint(std::string_view text)
{
  for (const std::string_view begin : {"https://", "http://"}) {
    if (text.starts_with(begin)) {
      const auto at = host_port(text.substr(begin.size()));
      return at && is_host(at->host);
    }
  }
  return false;
}

// Takes what the URL says out of its parts. The text of the Error is the reason why the URL is invalid.
Result<ConnectionSpec> spec_in(UrlParts parts)
{
  const auto invalid = [](std::string why) { return Error{ErrorCode::usage, std::move(why)}; };
  if (const std::string why = repeated_parameter(parts, {"region", "endpoint", "profile", "clock-skew"});
      !why.empty()) {
    return invalid(why);
  }
  ConnectionSpec spec;
  const auto slash = std::min(parts.location.find('/'), parts.location.size());
  spec.bucket = parts.location.substr(0, slash);
  spec.prefix = parts.location.substr(std::min(slash + 1, parts.location.size()));
  while (spec.prefix.ends_with('/')) {
    spec.prefix.pop_back();
  }
  if (!is_bucket(spec.bucket)) {
    return invalid("'" + printable(spec.bucket) + "' is no name of a bucket: 3 to 63 of a-z, 0-9, . and -");
  }
  if (!is_prefix(spec.prefix)) {
    return invalid(
        "the prefix has other characters than letters, digits, - _ . ~ and /, or a part that begins with a dot");
  }
  const auto text_of = [&parts](std::string_view name) {
    const auto value = parts.take(name);
    return value ? std::optional(percent_decoded(*value).value_or("")) : std::nullopt;
  };
  const auto region = text_of("region"), endpoint = text_of("endpoint"), profile = text_of("profile");
  const auto skew = text_of("clock-skew");
  if (!parts.parameters.empty()) {
    const std::string& first = parts.parameters.front();
    return invalid("there is no parameter " + printable(first.substr(0, first.find('='))) +
                   " (region, endpoint, profile and clock-skew are)");
  }
  if (region && !is_word(*region)) {
    return invalid("region names no region");
  }
  if (profile && profile->empty()) {
    return invalid("profile is empty");
  }
  if (endpoint && !is_endpoint(*endpoint)) {
    return invalid("endpoint is no https://host:port");
  }
  if (skew) {
    const auto duration = parse_duration(*skew);
    if (!duration || *duration > longest_clock_skew) {
      return invalid("clock-skew is no duration up to " + show(longest_clock_skew));
    }
    spec.clock_skew = *duration;
  }
  spec.prefix = spec.prefix.empty() ? std::string(default_prefix) : spec.prefix;
  spec.region = region.value_or("");
  spec.endpoint = endpoint.value_or("");
  spec.profile = profile.value_or("");
  return spec;
}

}  // namespace

bool ConnectionSpec::is_this_host() const
{
  const auto at = endpoint.empty() ? std::nullopt : host_port(endpoint.substr(endpoint.find("//") + 2));
  return at && rlock::is_this_host(at->host);
}

Result<Endpoint> parse_s3_url(std::string_view url)
{
  ASSIGN_OR_RETURN(const auto read, read_server_url(url, good_form));
  if (read.user.empty() && !read.password.empty()) {
    return invalid_url(url, "a secret needs an access key before it", good_form);
  }
  if (const auto spec = spec_in(read.parts); !spec) {
    return invalid_url(url, spec.error().text, good_form);
  }
  return other_endpoint(read);
}

ConnectionSpec connection_spec(const Endpoint& endpoint)
{
  auto spec = spec_in(url_parts(endpoint.path));
  if (!spec) {
    return {};
  }
  spec->url = endpoint.shown();
  spec->user = endpoint.user;
  spec->password = endpoint.password;
  return *std::move(spec);
}

std::string key_of_lock(std::string_view name)
{
  std::string key;
  for (const char c : name) {
    const bool is_plain = is_unreserved(c) && c != escape && (c != '.' || !key.empty());
    key += is_plain ? std::string(1, c) : escape + hex_pair(static_cast<unsigned char>(c));
  }
  return key;
}

std::optional<std::string> lock_of_key(std::string_view key)
{
  std::string encoded;
  for (const char c : key) {
    encoded += c == escape ? '%' : c;
  }
  auto name = percent_decoded(encoded);
  return name && key_of_lock(*name) == key ? name : std::nullopt;
}

}  // namespace rlock::s3
