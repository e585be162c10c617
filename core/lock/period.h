// SPDX-License-Identifier: Apache-2.0
// The periods of the calendar in which `rlock once --per` wants one success: hours, days, weeks, or equal parts of a day. They
// begin at local midnight, and a week begins on Monday. On a day on which the clocks are changed each part of the day is there once,
// and begins when the clock on the wall first shows its time; an hour that comes twice, and its parts, are there twice.
#pragma once

#include <cstdint>
#include "base/clock.h"

namespace rlock {

inline constexpr Millis one_hour = std::chrono::hours{1};
inline constexpr Millis one_day = std::chrono::days{1};
inline constexpr Millis one_week = std::chrono::weeks{1};

// One period in the time zone of this process, for a server whose clock differs from the clock of this host. Times are in
// milliseconds since 1970.
struct Period {
  std::int64_t begin_ms;
  std::int64_t next_ms;  // when the period after it begins
  Millis length;         // of most periods; one in which the clocks are changed is longer or shorter
};

// Whether there are such periods: the length is a week, or whole seconds that divide a day.
bool is_period(Millis length);

// The period with that moment in it. `length`: see is_period. Reads the time zone of this process.
Period period_at(Millis length, std::int64_t now_ms);

// When the period with that moment in it begins, which may be another period than `period`. The scripts compute the same.
std::int64_t period_begin(const Period& period, std::int64_t moment_ms);

}  // namespace rlock
