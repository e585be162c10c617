// SPDX-License-Identifier: Apache-2.0
#include "wire/url.h"

#include "base/text.h"
#include "wire/socket_path.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <arpa/inet.h>

namespace rlock {
namespace {

constexpr std::string_view good_forms =
    "(good ones: redis://host:6379/0, unix:///path/to/socket, local:)";

bool is_control(char c)
{
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

// Up to the last '@', for a password may have an unescaped '/' or '@' in it.
std::string without_secrets(std::string_view url)
{
  const auto at = url.rfind('@');
  if (at == std::string_view::npos) {
    return printable(url);
  }
  const auto scheme = url.find("://");
  const std::string_view head = scheme < at ? url.substr(0, scheme + 3) : std::string_view{};
  return printable(std::string(head) + std::string(url.substr(at + 1)));
}

Error bad_url(std::string_view url, std::string_view why)
{
  return {Fault::usage, "bad server URL '" + without_secrets(url) + "': " + std::string(why)};
}

std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t max)
{
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && number <= max ? std::optional(number) : std::nullopt;
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
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || error != std::errc{} || end != digits.data() + 2) {
      return std::nullopt;
    }
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

// So that parse_url reads the path back, and does not take an '@' for the end of a secret.
std::string percent_encoded(std::string_view path)
{
  constexpr std::string_view digits = "0123456789ABCDEF";
  constexpr std::string_view special = "%?#@ \\";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_control(c) || byte >= 0x80 || special.find(c) != std::string_view::npos) {
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      out += c;
    }
  }
  return out;
}

// Takes `user[:password]@` off the front of `rest`; false if it is not well escaped.
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

bool is_host_name(std::string_view host)
{
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  return !host.empty() && std::all_of(host.begin(), host.end(), allowed);
}

bool is_ipv6(std::string_view host)
{
  const auto percent = host.find('%');  // fe80::1%eth0
  const std::string address(host.substr(0, percent));
  in6_addr parsed{};
  const bool zone_is_fine =
      percent == std::string_view::npos || is_host_name(host.substr(percent + 1));
  return zone_is_fine && ::inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
}

// Nothing, or what is wrong with `host[:port]`.
std::optional<std::string_view> take_authority(std::string_view authority, Endpoint& endpoint)
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
    return "in brackets there must be an IPv6 address, as in redis://[::1]:6379";
  }
  if (!bracketed && !is_host_name(host)) {
    return "there is no such host name (escape / and @ in a password as %2F and %40)";
  }
  endpoint.host = host;

  port.remove_prefix(bracketed ? 1 : 0);
  if (port.empty()) {
    return std::nullopt;
  }
  const auto number = port.starts_with(':') ? parse_number(port.substr(1), 65535) : std::nullopt;
  if (number.value_or(0) == 0) {
    return "the port must be 1 to 65535";
  }
  endpoint.port = static_cast<std::uint16_t>(*number);
  return std::nullopt;
}

Result<Endpoint> parse_redis(std::string_view url, std::string_view rest)
{
  Endpoint endpoint;
  if (!take_credentials(rest, endpoint)) {
    return bad_url(url, "a % in user or password must be written %25");
  }
  const auto slash = std::min(rest.find('/'), rest.size());
  if (const auto wrong = take_authority(rest.substr(0, slash), endpoint)) {
    return bad_url(url, *wrong);
  }
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

Result<Endpoint> parse_unix(std::string_view url, std::string_view rest)
{
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  if (!take_credentials(rest, endpoint)) {
    return bad_url(url, "a % in user or password must be written %25");
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
    return bad_url(url, "the path of a unix socket can have 107 bytes at most");
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

}  // namespace

std::string Endpoint::shown() const
{
  if (kind == Kind::local) {
    return "local:";
  }
  if (kind == Kind::unix_socket) {
    return "unix://" + percent_encoded(path) + (db == 0 ? "" : "?db=" + std::to_string(db));
  }
  const bool ipv6 = host.find(':') != std::string::npos;
  return (tls ? "rediss://" : "redis://") + (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port) +
         (db == 0 ? "" : "/" + std::to_string(db));
}

Result<Endpoint> parse_url(std::string_view url)
{
  if (std::any_of(url.begin(), url.end(), is_control)) {
    return bad_url(url, "it has a control character in it");
  }
  if (url.starts_with("local:")) {
    if (url != "local:") {
      return bad_url(url, "nothing may follow local:");
    }
    Endpoint endpoint;
    endpoint.kind = Endpoint::Kind::local;
    return endpoint;
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
  if (scheme == "redis+sentinel" || scheme == "redis+cluster") {
    return bad_url(url,
                   std::string(scheme) + ":// is not supported yet " + std::string(good_forms));
  }
  return bad_url(url, "rlock knows no such scheme " + std::string(good_forms));
}

}  // namespace rlock
