// SPDX-License-Identifier: Apache-2.0
#include "net/url_parts.h"

#include <arpa/inet.h>
#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>
#include "base/text.h"

namespace rlock {
namespace {

constexpr std::size_t longest_host = 253;    // bytes of a DNS name (RFC 1035)
constexpr std::size_t longest_quoted = 200;  // bytes of a URL in an error
constexpr auto npos = std::string_view::npos;

constexpr std::string_view stray_at =
    "an @ stands behind the host; write / ? and @ in a user or password as %2F, %3F and %40, or give the password by "
    "--password-file; write an @ elsewhere as %40";
constexpr std::string_view unshowable = "it has a character that cannot be shown; write it with %";
constexpr std::string_view bad_host =
    "a host or its port, from 1 to 65535, is invalid, or the @ between a password and the host is missing";

// Each host of a URL that several servers share might have got a path of its own: "the chroot stands once, ...". `good_form`: the
// last word of its path is what the path is.
std::string repeated_path(std::string_view good_form)
{
  const std::string_view form = good_form.substr(0, good_form.find('?'));
  return "the " + std::string(form.substr(form.rfind('/') + 1)) +
         " stands once, after the last host; write a comma in a name as %2C";
}

bool has(std::string_view text, char c) { return text.find(c) != npos; }

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
  return text.size() <= most_digits && std::all_of(text.begin(), text.end(), is_digit);
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
        item.starts_with('[') && bracket != npos && is_ipv6(item.substr(1, bracket - 1))) {
      item.remove_prefix(bracket + 1);
    }
    if (const auto colon = item.find(':'); colon != npos && !is_port(item.substr(colon + 1))) {
      return begin;
    }
    begin = end + 1;
  }
  return rest.size();
}

// The offset of the first name of a password in a text that is no URL, such as "host=db password=x"; npos: there is none.
std::size_t secret_name_in(std::string_view text)
{
  constexpr std::string_view names[] = {"pass", "pwd", "secret", "token"};
  std::string plain(text);
  std::transform(plain.begin(), plain.end(), plain.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  std::size_t first = npos;
  for (const std::string_view name : names) {
    first = std::min(first, plain.find(name));
  }
  return plain.find('=') == npos ? npos : first;
}

// The text up to the value of the first password. An '@' in front of it may be the end of the login of a misspelled URL.
std::string quotable_keywords(std::string_view text, std::size_t secret)
{
  const auto at = text.rfind('@', secret);
  const std::size_t begin = at == npos ? 0 : at + 1;
  const std::size_t sign = text.find('=', secret);
  const std::string shown = (begin > 0 ? "..." : "") + printable(text.substr(begin, sign - begin));
  return shown + (sign == npos ? "..." : "=***");
}

std::string whole_quotable(std::string_view url)
{
  const std::size_t head = scheme_size(url);
  if (const auto secret = head > 0 ? npos : secret_name_in(url); secret != npos) {
    return quotable_keywords(url, secret);
  }
  const std::string scheme(url.substr(0, head));
  std::string_view rest = url.substr(head);
  const std::size_t question = std::min(rest.find('?'), rest.size());
  if (rest.find('@', question) != npos) {
    return scheme + "...";
  }
  const auto at = rest.rfind('@');
  rest.remove_prefix(at == npos ? 0 : at + 1);
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

std::string host_in_brackets(std::string_view text)
{
  constexpr std::string_view encoded = "%25";
  const auto percent = std::min(text.find('%'), text.size());
  const std::string_view zone = text.substr(percent);
  const bool is_encoded = zone.starts_with(encoded) && zone.size() > encoded.size();
  return std::string(text.substr(0, percent)) +
         (is_encoded ? "%" + std::string(zone.substr(encoded.size())) : std::string(zone));
}

std::string quotable_url(std::string_view url) { return shortened(whole_quotable(url), longest_quoted); }

bool hides_password(std::string_view url)
{
  const std::size_t head = scheme_size(url);
  const std::string_view rest = url.substr(head);
  const std::string_view parameters = rest.substr(std::min(rest.find('?'), rest.size()));
  const std::size_t at = rest.rfind('@');
  return secret_name_in(head == 0 ? url : parameters) != npos || (at != npos && has(rest.substr(0, at), ':'));
}

Error invalid_url(std::string_view url, std::string_view why, std::string_view good_form)
{
  return {ErrorCode::usage,
          "the URL '" + quotable_url(url) + "' is invalid: " + std::string(why) + " (" + std::string(good_form) + ")"};
}

bool is_scheme(std::string_view text) { return scheme_size(std::string(text) + "://") == text.size() + 3; }

std::string percent_encoded(std::string_view text)
{
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
                          std::string_view("-._~").find(c) != std::string_view::npos;
    out += is_plain ? std::string(1, c) : std::string{'%', digits[byte >> 4U], digits[byte & 15U]};
  }
  return out;
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

std::string UrlParts::without_login() const
{
  std::string all = "//" + location;
  for (const std::string& each : parameters) {
    all += (&each == &parameters.front() ? "?" : "&") + each;
  }
  return all;
}

std::optional<std::string> UrlParts::take(std::string_view name)
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

UrlParts url_parts(std::string_view text)
{
  UrlParts parts;
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

Result<ServerUrl> read_server_url(std::string_view url, std::string_view good_form)
{
  const auto colon = std::min(url.find(':'), url.size());
  const std::string_view scheme = url.substr(0, colon);
  const std::string_view text = url.substr(std::min(colon + 1, url.size()));
  if (!text.starts_with("//")) {
    const bool may_have_secret = !text.starts_with('/') || text.find_first_of("@:?=") != npos;
    const std::string shown = printable(may_have_secret ? url.substr(0, scheme.size() + 1) : url);
    return Error{ErrorCode::usage, "the URL '" + shown + "' is invalid: it has no // (" + std::string(good_form) + ")"};
  }
  ServerUrl found{.scheme = std::string(scheme), .user = {}, .password = {}, .parts = url_parts(text)};
  UrlParts& parts = found.parts;
  const auto any_shown = [&parts](const auto& is_wrong) {  // as the server is shown, without its passwords
    const auto is_wrong_parameter = [&](const std::string& each) {
      return !each.starts_with("password=") && is_wrong(each);
    };
    return is_wrong(parts.location) || std::ranges::any_of(parts.parameters, is_wrong_parameter);
  };
  if (any_shown([](const std::string& part) { return has(part, '@'); })) {
    return invalid_url(url, stray_at, good_form);
  }
  if (any_shown([](const std::string& part) { return without_controls(part) != part; })) {
    return invalid_url(url, unshowable, good_form);
  }
  if (hosts_size(parts.location) < parts.location.size()) {
    return invalid_url(url, bad_host, good_form);
  }
  if (parts.location.find(',', std::min(parts.location.find('/'), parts.location.size())) != std::string::npos) {
    return invalid_url(url, repeated_path(good_form), good_form);
  }
  const auto user = percent_decoded(std::exchange(parts.user, {}));
  const auto password = percent_decoded(std::exchange(parts.password, {}));
  if (!user || !password) {
    return invalid_url(url, bad_escape, good_form);
  }
  found.user = *user;
  found.password = *password;
  return found;
}

std::string repeated_parameter(const UrlParts& parts, std::initializer_list<std::string_view> names)
{
  for (const std::string_view name : names) {
    UrlParts rest = parts;
    if (rest.take(name) && rest.take(name)) {
      return std::string(name) + " is given twice";
    }
  }
  return "";
}

std::optional<HostPort> host_port(std::string_view text)
{
  const bool has_brackets = text.starts_with('[');
  const auto end = has_brackets ? text.find(']') : text.find(':');
  if (has_brackets && end == std::string_view::npos) {
    return std::nullopt;
  }
  const auto host = has_brackets ? host_in_brackets(text.substr(1, end - 1)) : percent_decoded(text.substr(0, end));
  std::string_view port = text.substr(std::min(end, text.size()));
  port.remove_prefix(has_brackets ? 1 : 0);
  HostPort at{.host = host.value_or(""), .port = 0};
  if (at.host.empty()) {
    return std::nullopt;
  }
  if (port.empty()) {
    return at;
  }
  const auto [stop, error] = std::from_chars(port.data() + 1, port.data() + port.size(), at.port);
  const bool is_port = port[0] == ':' && error == std::errc{} && stop == port.data() + port.size() && at.port != 0;
  return is_port ? std::optional(at) : std::nullopt;
}

Result<std::vector<HostPort>> host_list(std::string_view text, std::uint16_t default_port)
{
  if (text.empty()) {
    return Error{ErrorCode::usage, "it names no host"};
  }
  std::vector<HostPort> hosts;
  for (const std::string_view part : split(text, ',')) {
    const auto at = host_port(part);
    if (!at) {
      return Error{ErrorCode::usage, "'" + printable(part) + "' is no host with a port from 1 to 65535"};
    }
    hosts.push_back({.host = at->host, .port = at->port == 0 ? default_port : at->port});
  }
  return hosts;
}

Endpoint other_endpoint(const ServerUrl& url)
{
  Endpoint endpoint;
  endpoint.scheme = url.scheme;
  endpoint.kind = Endpoint::Kind::other;
  endpoint.path = url.parts.without_login();
  endpoint.user = url.user;
  endpoint.password = url.password;
  return endpoint;
}

std::vector<Endpoint> members_at(const std::vector<HostPort>& hosts, std::string_view scheme, const Endpoint& group)
{
  std::vector<Endpoint> members;
  for (const HostPort& at : hosts) {
    Endpoint& member = members.emplace_back();
    member.scheme = scheme;
    member.host = at.host;
    member.port = at.port;
    member.tls = group.tls;
    member.password_file = group.password_file;
  }
  return members;
}

bool is_this_host(const std::string& host)
{
  in_addr address{};
  const bool is_loopback = ::inet_pton(AF_INET, host.c_str(), &address) == 1 && host.starts_with("127.");
  return host.empty() || host[0] == '/' || host[0] == '@' || host == "localhost" || host == "::1" || is_loopback;
}

}  // namespace rlock
