// SPDX-License-Identifier: Apache-2.0
#include "doctor/facts.h"

#include <algorithm>
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
  return whole ? std::optional(value) : std::nullopt;
}

}  // namespace rlock
