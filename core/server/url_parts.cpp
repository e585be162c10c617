// SPDX-License-Identifier: Apache-2.0
#include "server/url_parts.h"

#include "base/text.h"

#include <algorithm>
#include <charconv>

#include <arpa/inet.h>

namespace rlock {
namespace {

constexpr std::size_t longest_host = 253;    // bytes of a DNS name (RFC 1035)
constexpr std::size_t longest_quoted = 200;  // bytes of a URL in an error

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

// The size of the scheme with "://" that the text begins with; 0: there is none.
std::size_t scheme_size(std::string_view url)
{
  const auto end = url.find("://");
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+';
  };
  const bool is_scheme = end != std::string_view::npos && std::all_of(url.begin(), url.begin() + end, is_part);
  return is_scheme ? end + 3 : 0;
}

bool is_port(std::string_view text)
{
  constexpr std::size_t most_digits = 5;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && text.size() <= most_digits && std::all_of(text.begin(), text.end(), is_digit);
}

// The size of what is surely no user and password at the front of `host:port,host:port/path`: before a ':' that no port
// follows, as in "user:password" where the '@' is missing.
std::size_t hosts_size(std::string_view rest)
{
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  for (std::size_t begin = 0; begin < authority.size();) {
    const std::size_t end = std::min(authority.find(',', begin), authority.size());
    std::string_view item = authority.substr(begin, end - begin);
    if (const auto bracket = item.find(']');
        item.starts_with('[') && bracket != std::string_view::npos && is_ipv6(item.substr(1, bracket - 1))) {
      item.remove_prefix(bracket + 1);
    }
    if (const auto colon = item.find(':'); colon != std::string_view::npos && !is_port(item.substr(colon + 1))) {
      return begin;
    }
    begin = end + 1;
  }
  return rest.size();
}

// The URL without what may be a secret where it is written wrongly: all text up to the last '@', because a password may
// contain an unescaped '/', '?' or '@'; a user and password without an '@'; and the parameters.
std::string quotable(std::string_view url)
{
  const std::size_t head = scheme_size(url);
  const std::string scheme(url.substr(0, head));
  std::string_view rest = url.substr(head);
  const std::size_t question = std::min(rest.find('?'), rest.size());
  if (rest.find('@', question) != std::string_view::npos) {
    return scheme + "...";
  }
  const auto at = rest.rfind('@');
  rest.remove_prefix(at == std::string_view::npos ? 0 : at + 1);
  const std::size_t shown = std::min(hosts_size(rest), rest.find('?'));
  return printable(scheme + std::string(rest.substr(0, shown))) + (shown < rest.size() ? "..." : "");
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
