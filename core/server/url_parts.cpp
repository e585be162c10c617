// SPDX-License-Identifier: Apache-2.0
#include "server/url_parts.h"

#include "base/text.h"

#include <algorithm>
#include <charconv>

#include <arpa/inet.h>

namespace rlock {
namespace {

constexpr std::string_view secret_parameter = "sentinel_password=";
constexpr std::size_t longest_host = 253;    // bytes of a DNS name (RFC 1035)
constexpr std::size_t longest_quoted = 200;  // bytes of a URL in an error

// The text up to the last '@', because a password may contain an unescaped '/' or '@', and all text from a password
// among the parameters on are left out.
std::string quotable(std::string_view url)
{
  const auto scheme = url.find("://");
  const auto head = scheme == std::string_view::npos ? 0 : scheme + 3;
  const auto at = url.rfind('@');
  const auto secret = url.find(secret_parameter);
  const bool has_at = at != std::string_view::npos;
  if (secret == std::string_view::npos) {
    return has_at ? printable(std::string(url.substr(0, head < at ? head : 0)) + std::string(url.substr(at + 1)))
                  : printable(url);
  }
  const auto from = std::min(has_at ? at + 1 : head, secret);
  return printable(std::string(url.substr(0, std::min(head, from))) + std::string(url.substr(from, secret - from))) +
         "...";
}

std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t max)
{
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && number <= max ? std::optional(number) : std::nullopt;
}

bool is_ipv6(std::string_view host)
{
  const auto percent = host.find('%');  // fe80::1%eth0
  const std::string address(host.substr(0, percent));
  in6_addr parsed{};
  const bool zone_is_fine = percent == std::string_view::npos || is_host_name(host.substr(percent + 1));
  return zone_is_fine && ::inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
}

}  // namespace

bool is_host_name(std::string_view host)
{
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  return !host.empty() && host.size() <= longest_host && std::all_of(host.begin(), host.end(), allowed);
}

bool is_host(std::string_view host) { return is_host_name(host) || is_ipv6(host); }

Error bad_url(std::string_view url, std::string_view why)
{
  return {ErrorCode::usage, "bad server URL '" + shortened(quotable(url), longest_quoted) + "': " + std::string(why)};
}

std::optional<unsigned> parse_db(std::string_view text)
{
  constexpr std::uint64_t max_db = 0x7fffffff;
  const auto number = parse_number(text, max_db);
  return number ? std::optional(static_cast<unsigned>(*number)) : std::nullopt;
}

std::optional<std::string> percent_decoded(std::string_view text)
{
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    unsigned byte = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || error != std::errc{} || end != digits.data() + 2) {
      return std::nullopt;
    }
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
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
  if (bracketed && (port.empty() || !is_ipv6(host))) {
    return "the brackets must contain an IPv6 address, as in redis://[::1]:6379";
  }
  if (!bracketed && !is_host_name(host)) {
    return "the host name is invalid (escape / and @ in a password as %2F and %40)";
  }
  at.host = host;

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

}  // namespace rlock
