// SPDX-License-Identifier: Apache-2.0
#include "lock/period.h"

#include <algorithm>
#include <ctime>

namespace rlock {
namespace {

constexpr std::int64_t second_ms = 1000;

// The number of whole steps, also for a negative number.
std::int64_t floor_div(std::int64_t number, std::int64_t step) { return number / step - (number % step < 0 ? 1 : 0); }

std::tm local_time(std::int64_t now_ms)
{
  const auto seconds = static_cast<std::time_t>(floor_div(now_ms, second_ms));
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return local;
}

// `days` after the day of `local`, `seconds` after its midnight by the clock on the wall.
std::int64_t moment_of(std::tm local, int days, int seconds)
{
  local.tm_mday += days;
  local.tm_hour = local.tm_min = 0;
  local.tm_sec = seconds;
  local.tm_isdst = -1;
  return static_cast<std::int64_t>(std::mktime(&local)) * second_ms;
}

// A part of an hour is counted from the moment itself, because an hour that comes twice has each of them twice.
Period part_of_hour(const std::tm& local, Millis length, std::int64_t now_ms)
{
  const std::int64_t second = floor_div(now_ms, second_ms) * second_ms;
  const std::int64_t in_hour = (local.tm_min * 60 + local.tm_sec) * second_ms + now_ms - second;
  const std::int64_t begin = now_ms - in_hour % length.count();
  return {.begin_ms = begin, .next_ms = begin + length.count(), .length = length};
}

Period part_of_day(const std::tm& local, Millis length, std::int64_t now_ms)
{
  const auto part = static_cast<int>(length.count() / second_ms);
  const int number = ((local.tm_hour * 60 + local.tm_min) * 60 + local.tm_sec) / part;
  return {.begin_ms = std::min(moment_of(local, 0, number * part), now_ms),
          .next_ms = moment_of(local, 0, (number + 1) * part),
          .length = length};
}

Period whole_days(const std::tm& local, Millis length)
{
  const int since_begin = length == one_week ? (local.tm_wday + 6) % 7 : 0;  // a week begins on Monday
  const auto days = static_cast<int>(length / one_day);
  return {.begin_ms = moment_of(local, -since_begin, 0),
          .next_ms = moment_of(local, days - since_begin, 0),
          .length = length};
}

}  // namespace

bool is_period(Millis length)
{
  const bool is_part =
      length >= Millis{second_ms} && length % Millis{second_ms} == Millis{0} && one_day % length == Millis{0};
  return is_part || length == one_week;
}

Period period_at(Millis length, std::int64_t now_ms)
{
  const std::tm local = local_time(now_ms);
  if (length >= one_day) {
    return whole_days(local, length);
  }
  return one_hour % length == Millis{0} ? part_of_hour(local, length, now_ms) : part_of_day(local, length, now_ms);
}

std::int64_t period_begin(const Period& period, std::int64_t moment_ms)
{
  if (moment_ms >= period.begin_ms && moment_ms < period.next_ms) {
    return period.begin_ms;
  }
  const std::int64_t known = moment_ms >= period.next_ms ? period.next_ms : period.begin_ms;
  return known + floor_div(moment_ms - known, period.length.count()) * period.length.count();
}

}  // namespace rlock
