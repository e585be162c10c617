// SPDX-License-Identifier: Apache-2.0
#include "base/timestamp.h"

#include <cstdio>
#include <ctime>

namespace rlock {
namespace {

std::optional<std::string> formatted(std::int64_t wall_ms, const char* format)
{
  // ISO 8601 has four digits for the year.
  constexpr std::int64_t year_10000_ms = 253'402'300'800'000;
  if (wall_ms <= 0 || wall_ms >= year_10000_ms) {
    return std::nullopt;
  }
  const std::time_t seconds = wall_ms / 1000;
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) {
    return std::nullopt;
  }
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, format, &parts));
}

}  // namespace

std::optional<std::string> iso_utc(std::int64_t wall_ms)
{
  auto text = formatted(wall_ms, "%Y-%m-%dT%H:%M:%S");
  if (text) {
    char millis[8];
    std::snprintf(millis, sizeof millis, ".%03dZ", static_cast<int>(wall_ms % 1000));
    *text += millis;
  }
  return text;
}

std::optional<std::string> readable_utc(std::int64_t wall_ms) { return formatted(wall_ms, "%Y-%m-%d %H:%M:%S UTC"); }

}  // namespace rlock
