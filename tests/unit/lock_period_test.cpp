// SPDX-License-Identifier: Apache-2.0
#include "lock/period.h"
#include "support/shown_zone.h"
#include "support/test.h"

#include <ctime>

using namespace rlock::test;

namespace {

// Central Europe by its rule, because the host may have no table of zones.
constexpr const char* berlin = "CET-1CEST,M3.5.0,M10.5.0/3";

std::int64_t utc(int year, int month, int day, int hour, int minute, int second = 0)
{
  std::tm time{};
  time.tm_year = year - 1900;
  time.tm_mon = month - 1;
  time.tm_mday = day;
  time.tm_hour = hour;
  time.tm_min = minute;
  time.tm_sec = second;
  return static_cast<std::int64_t>(::timegm(&time)) * 1000;
}

std::string shown(const Period& period)
{
  return *readable_utc(period.begin_ms) + " - " + *readable_utc(period.next_ms);
}

}  // namespace

TEST_CASE("period: it begins at local midnight, and a week on Monday")
{
  const InZone zone(berlin);
  struct Row {
    const char* why;
    Millis length;
    std::int64_t now;
    const char* expect;
  };
  const Row rows[] = {
      {"a day in winter", one_day, utc(2026, 11, 26, 3, 15), "2026-11-25 23:00:00 UTC - 2026-11-26 23:00:00 UTC"},
      {"after UTC's midnight", one_day, utc(2026, 11, 25, 23, 30), "2026-11-25 23:00:00 UTC - 2026-11-26 23:00:00 UTC"},
      {"a week", one_week, utc(2026, 11, 26, 3, 15), "2026-11-22 23:00:00 UTC - 2026-11-29 23:00:00 UTC"},
      {"a Sunday", one_week, utc(2026, 11, 22, 12, 0), "2026-11-15 23:00:00 UTC - 2026-11-22 23:00:00 UTC"},
      {"an hour", one_hour, utc(2026, 11, 26, 3, 15, 7), "2026-11-26 03:00:00 UTC - 2026-11-26 04:00:00 UTC"},
      {"six hours", 6 * one_hour, utc(2026, 11, 26, 12, 0), "2026-11-26 11:00:00 UTC - 2026-11-26 17:00:00 UTC"},
      {"a quarter", one_hour / 4, utc(2026, 11, 26, 3, 16), "2026-11-26 03:15:00 UTC - 2026-11-26 03:30:00 UTC"},
      {"the day of 25 hours", one_day, utc(2026, 10, 25, 12, 0), "2026-10-24 22:00:00 UTC - 2026-10-25 23:00:00 UTC"},
      {"the day of 23 hours", one_day, utc(2026, 3, 29, 12, 0), "2026-03-28 23:00:00 UTC - 2026-03-29 22:00:00 UTC"},
      {"an hour that comes twice", one_hour, utc(2026, 10, 25, 1, 30),
       "2026-10-25 01:00:00 UTC - 2026-10-25 02:00:00 UTC"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    CHECK(shown(period_at(row.length, row.now)) == row.expect);
  }
}

TEST_CASE("period: parts of a day, and weeks")
{
  for (const Millis good : {one_hour, one_day, one_week, one_hour / 4, 6 * one_hour, Millis{1000}}) {
    CAPTURE(good.count());
    CHECK(is_period(good));
  }
  for (const Millis bad : {Millis{0}, 7 * one_hour, 2 * one_day, 25 * one_hour, Millis{-1000}, Millis{256}}) {
    CAPTURE(bad.count());
    CHECK_FALSE(is_period(bad));
  }
}

TEST_CASE("period: of a server whose clock is wrong")
{
  const InZone zone(berlin);
  const std::int64_t now = utc(2026, 10, 25, 12, 0);
  const Period today = period_at(one_day, now);
  CHECK(period_begin(today, now) == utc(2026, 10, 24, 22, 0));
  CHECK(period_begin(today, today.next_ms) == today.next_ms);
  CHECK(period_begin(today, today.next_ms - 1) == today.begin_ms);
  CHECK(period_begin(today, today.begin_ms - 1) == utc(2026, 10, 23, 22, 0));
  CHECK(period_begin(today, utc(2026, 10, 27, 1, 0)) == utc(2026, 10, 26, 23, 0));
}
