// SPDX-License-Identifier: Apache-2.0
#include "base/shown_time.h"

#include <ctime>
#include <string_view>
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
  constexpr std::int64_t hour_ms = 3'600'000;
  constexpr std::size_t date_length = 10;
  constexpr std::size_t minute_length = 16;  // with the date
  constexpr std::size_t second_length = 19;
  const auto moment = shown_time(wall_ms);
  if (!moment) {
    return std::nullopt;
  }
  const bool is_today = moment->substr(0, date_length) == shown_time(now_ms).value_or("").substr(0, date_length);
  const std::size_t begin = is_today ? date_length + 1 : 0;
  const bool is_soon = wall_ms > now_ms && wall_ms < now_ms + hour_ms;
  return moment->substr(begin, (is_soon ? second_length : minute_length) - begin) + moment->substr(second_length);
}

std::optional<std::int64_t> read_time(const std::string& text, TimeOfDay which, std::int64_t now_ms)
{
  const bool has_zone = text.ends_with('Z');
  const bool is_utc = has_zone || shown_zone() == ShownZone::utc;
  const std::string word = text.substr(0, text.size() - (has_zone ? 1 : 0));
  const std::time_t now = now_ms / 1000;
  for (const char* const form :
       {"%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%H:%M"}) {
    std::tm parts{};
    const bool is_time_of_day = std::string_view(form) == "%H:%M";
    if (is_time_of_day && (is_utc ? ::gmtime_r(&now, &parts) : ::localtime_r(&now, &parts)) == nullptr) {
      return std::nullopt;
    }
    parts.tm_sec = 0;
    parts.tm_isdst = -1;
    const char* const end = ::strptime(word.c_str(), form, &parts);
    if (end != nullptr && *end == '\0') {
      const auto time_of = [&](std::tm moment) { return is_utc ? ::timegm(&moment) : std::mktime(&moment); };
      std::time_t time = time_of(parts);
      const bool is_next = time > now;
      if (is_time_of_day && is_next != (which == TimeOfDay::next)) {
        parts.tm_mday += is_next ? -1 : 1;
        time = time_of(parts);
      }
      return time > 0 ? std::optional(std::int64_t{time} * 1000) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace rlock
