// SPDX-License-Identifier: Apache-2.0
#include "net/url_parts.h"

#include <arpa/inet.h>
#include <algorithm>
#include <charconv>
#include <system_error>

namespace rlock {

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

std::optional<HostPort> host_port(std::string_view text)
{
  const bool has_brackets = text.starts_with('[');
  const auto end = has_brackets ? text.find(']') : text.find(':');
  if (has_brackets && end == std::string_view::npos) {
    return std::nullopt;
  }
  const auto host = percent_decoded(has_brackets ? text.substr(1, end - 1) : text.substr(0, end));
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

bool is_this_host(const std::string& host)
{
  in_addr address{};
  const bool is_loopback = ::inet_pton(AF_INET, host.c_str(), &address) == 1 && host.starts_with("127.");
  return host.empty() || host[0] == '/' || host[0] == '@' || host == "localhost" || host == "::1" || is_loopback;
}

}  // namespace rlock
