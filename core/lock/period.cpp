// SPDX-License-Identifier: Apache-2.0
#include "lock/period.h"

#include <algorithm>
#include <ctime>

namespace rlock {
namespace {

constexpr std::int64_t second_ms = 1000;
constexpr std::int64_t day_ms = one_day.count();
constexpr std::int64_t a_monday_ms = 4 * day_ms;  // 1970-01-05, as the clock on the wall shows it

// The number of whole steps, also for a negative number.
std::int64_t floor_div(std::int64_t number, std::int64_t step) { return number / step - (number % step < 0 ? 1 : 0); }

// How far the clock on the wall is ahead of UTC.
std::int64_t offset_at(std::int64_t moment_ms)
{
  const auto seconds = static_cast<std::time_t>(floor_div(moment_ms, second_ms));
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return local.tm_gmtoff * second_ms;
}

// The first moment after `before` at which the clocks are changed. They are changed once until `after`.
std::int64_t change_between(std::int64_t before, std::int64_t after)
{
  const std::int64_t old_offset = offset_at(before);
  while (after - before > second_ms) {
    const std::int64_t middle = before + (after - before) / 2 / second_ms * second_ms;
    (offset_at(middle) == old_offset ? before : after) = middle;
  }
  return after;
}

// The first moment at which the clock on the wall shows `wall_ms` or more.
std::int64_t first_moment_of(std::int64_t wall_ms)
{
  const std::int64_t day_before = wall_ms - day_ms;
  const std::int64_t day_after = wall_ms + day_ms;
  const std::int64_t by_old_offset = wall_ms - offset_at(day_before);
  const std::int64_t by_new_offset = wall_ms - offset_at(day_after);
  if (by_old_offset == by_new_offset) {
    return by_old_offset;
  }
  const std::int64_t change = change_between(day_before, day_after);
  return by_old_offset < change ? by_old_offset : std::max(by_new_offset, change);
}

// Whether the clocks are changed near the moment by another time than whole periods. If they are changed by whole periods, such as
// an hour that comes twice, each period has its length.
bool is_uneven(Millis length, std::int64_t now_ms)
{
  const std::int64_t near = std::max(length.count(), day_ms) + day_ms;
  return (offset_at(now_ms + near) - offset_at(now_ms - near)) % length.count() != 0;
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
  const std::int64_t step = length.count();
  const std::int64_t origin_ms = length == one_week ? a_monday_ms : 0;
  const std::int64_t wall_ms = now_ms + offset_at(now_ms);
  const std::int64_t begin_by_wall = origin_ms + floor_div(wall_ms - origin_ms, step) * step;
  if (!is_uneven(length, now_ms)) {
    const std::int64_t begin = now_ms - (wall_ms - begin_by_wall);
    return {.begin_ms = begin, .next_ms = begin + step, .length = length};
  }
  std::int64_t next_by_wall = begin_by_wall + step;
  while (first_moment_of(next_by_wall) <= now_ms) {  // the clocks went back beyond the begin of the period
    next_by_wall += step;
  }
  return {.begin_ms = first_moment_of(next_by_wall - step), .next_ms = first_moment_of(next_by_wall), .length = length};
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
