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

struct ClockChange {
  const char* what;
  const char* zone;
  std::int64_t at;
};

const ClockChange clock_changes[] = {
    {"no change", "UTC0", utc(2026, 3, 29, 1, 0)},
    {"2:00 to 3:00", berlin, utc(2026, 3, 29, 1, 0)},
    {"3:00 to 2:00", berlin, utc(2026, 10, 25, 1, 0)},
    {"2:00 to 3:00, west of UTC", "EST5EDT,M3.2.0,M11.1.0", utc(2026, 3, 8, 7, 0)},
    {"2:00 to 1:00", "EST5EDT,M3.2.0,M11.1.0", utc(2026, 11, 1, 6, 0)},
    {"2:00 to 2:30", "LHST-10:30LHDT-11,M10.1.0,M4.1.0", utc(2026, 10, 3, 15, 30)},
    {"2:00 to 1:30", "LHST-10:30LHDT-11,M10.1.0,M4.1.0", utc(2026, 4, 4, 15, 0)},
    {"midnight to 1:00", "CST5CDT,M3.2.0/0,M11.1.0/1", utc(2026, 3, 8, 5, 0)},
    {"1:00 to midnight", "CST5CDT,M3.2.0/0,M11.1.0/1", utc(2026, 11, 1, 5, 0)},
    {"midnight to 23:00", "AAA3BBB,M3.2.0/0,M11.1.0/0", utc(2026, 11, 1, 2, 0)},
    {"0:30 to 23:30", "AAA3BBB,M3.2.0/0,M11.1.0/0:30", utc(2026, 11, 1, 2, 30)},
};

// All parts of a day of at least a quarter of an hour, a day and a week.
std::vector<Millis> lengths_of_periods()
{
  std::vector<Millis> lengths{one_week};
  for (Millis length = one_hour / 4; length <= one_day; length += Millis{1000}) {
    if (is_period(length)) {
      lengths.push_back(length);
    }
  }
  return lengths;
}

constexpr std::int64_t ten_minutes = 10 * 60'000;

}  // namespace

TEST_CASE("period: each moment near a change of the clocks is in one period, which is the same for all of it")
{
  for (const ClockChange& change : clock_changes) {
    const InZone zone(change.zone);
    for (const Millis length : lengths_of_periods()) {
      CAPTURE(change.what);
      CAPTURE(length.count());
      const std::int64_t around = std::max(length, one_day / 2).count();
      Period period = period_at(length, change.at - around);
      while (period.begin_ms < change.at + around) {
        REQUIRE(period.next_ms > period.begin_ms);
        for (std::int64_t now = period.begin_ms; now < period.next_ms; now += ten_minutes) {
          REQUIRE(period_at(length, now).begin_ms == period.begin_ms);
          REQUIRE(period_at(length, now).next_ms == period.next_ms);
        }
        REQUIRE(period_at(length, period.next_ms - 1).begin_ms == period.begin_ms);
        const Period next = period_at(length, period.next_ms);
        REQUIRE(next.begin_ms == period.next_ms);
        period = next;
      }
    }
  }
}

TEST_CASE("period: a day with a change of the clocks has each of its parts once, if they are longer than the change")
{
  for (const ClockChange& change : clock_changes) {
    const InZone zone(change.zone);
    const std::int64_t begin = period_at(one_day, change.at - 2 * one_day.count()).begin_ms;
    const std::int64_t end = period_at(one_day, change.at + 2 * one_day.count()).begin_ms;
    std::int64_t days = 0;
    for (std::int64_t at = begin; at < end; at = period_at(one_day, at).next_ms) {
      ++days;
    }
    for (const Millis length : lengths_of_periods()) {
      if (length <= one_hour || length > one_day) {
        continue;
      }
      CAPTURE(change.what);
      CAPTURE(length.count());
      std::int64_t parts = 0;
      for (std::int64_t at = begin; at < end; ++parts) {
        const std::int64_t next = period_at(length, at).next_ms;
        REQUIRE(next > at);
        at = next;
      }
      CHECK(parts == days * (one_day / length));
    }
  }
}

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
      {"six hours after the clocks went forward", 6 * one_hour, utc(2026, 3, 29, 4, 10),
       "2026-03-29 04:00:00 UTC - 2026-03-29 10:00:00 UTC"},
      {"six hours in which the clocks went forward", 6 * one_hour, utc(2026, 3, 29, 3, 50),
       "2026-03-28 23:00:00 UTC - 2026-03-29 04:00:00 UTC"},
      {"two hours that begin in the hour that is left out", 2 * one_hour, utc(2026, 3, 29, 1, 10),
       "2026-03-29 01:00:00 UTC - 2026-03-29 02:00:00 UTC"},
      {"six hours after the clocks went back", 6 * one_hour, utc(2026, 10, 25, 5, 10),
       "2026-10-25 05:00:00 UTC - 2026-10-25 11:00:00 UTC"},
      {"two hours with the hour that comes twice", 2 * one_hour, utc(2026, 10, 25, 1, 30),
       "2026-10-25 00:00:00 UTC - 2026-10-25 03:00:00 UTC"},
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
