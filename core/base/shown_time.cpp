// SPDX-License-Identifier: Apache-2.0
#include "base/shown_time.h"

#include <ctime>
#include "base/clock.h"

namespace rlock {

ShownZone& shown_zone()
{
  static ShownZone zone = ShownZone::local;
  return zone;
}

std::optional<std::string> shown_time(std::int64_t wall_ms)
{
  auto in_utc = readable_utc(wall_ms);
  if (!in_utc || shown_zone() == ShownZone::utc) {
    return in_utc;
  }
  const std::time_t seconds = wall_ms / 1000;
  std::tm parts{};
  if (::localtime_r(&seconds, &parts) == nullptr) {
    return in_utc;
  }
  char text[40];
  std::string local(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &parts));
  local.insert(local.size() - 2, ":");  // +0100 is +01:00
  return local;
}

std::optional<std::string> shown_minute(std::int64_t wall_ms, std::int64_t now_ms)
{
  constexpr std::size_t date_length = 10;
  constexpr std::size_t minute_length = 16;  // with the date
  constexpr std::size_t second_length = 19;
  const auto moment = shown_time(wall_ms);
  if (!moment) {
    return std::nullopt;
  }
  const bool is_today = moment->substr(0, date_length) == shown_time(now_ms).value_or("").substr(0, date_length);
  const std::size_t begin = is_today ? date_length + 1 : 0;
  return moment->substr(begin, minute_length - begin) + moment->substr(second_length);
}

}  // namespace rlock
