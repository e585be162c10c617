// SPDX-License-Identifier: Apache-2.0
#include "doctor/facts.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace rlock {

Fields Fields::of_info(std::string_view text)
{
  Fields fields;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line = line.substr(0, line.find('\r'));
    const auto colon = line.find(':');
    if (colon != std::string_view::npos) {
      fields.set(std::string(line.substr(0, colon)), std::string(line.substr(colon + 1)));
    }
  }
  return fields;
}

std::optional<std::string> Fields::text(std::string_view name) const
{
  const auto at = m_all.find(name);
  return at == m_all.end() ? std::nullopt : std::optional(at->second);
}

std::optional<std::int64_t> Fields::number(std::string_view name) const
{
  const auto at = m_all.find(name);
  if (at == m_all.end()) {
    return std::nullopt;
  }
  const std::string& digits = at->second;
  std::int64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = read.ec == std::errc{} && read.ptr == digits.data() + digits.size();
  constexpr std::int64_t most = std::int64_t{1} << 53;  // rules multiply it, by 100 at most
  return whole ? std::optional(std::clamp(value, -most, most)) : std::nullopt;
}

bool is_loopback(std::string_view host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

int number_of_version(std::string_view text)
{
  std::array<int, 3> parts{};
  for (int& part : parts) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), part);
    text.remove_prefix(std::min(text.size(), static_cast<std::size_t>(read.ptr - text.data()) + 1));
  }
  constexpr int most = 999;  // no version has so many parts; the sum cannot overflow
  for (int& part : parts) {
    part = std::clamp(part, 0, most);
  }
  return parts[0] * 10'000 + parts[1] * 100 + parts[2];
}

}  // namespace rlock
