// SPDX-License-Identifier: Apache-2.0
// Times of the wall clock as people read and type them: by the clock on their wall, with its distance from UTC, or in UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rlock {

enum class ShownZone { local, utc };

// The zone of this process; the default is local: that of TZ, or else of /etc/localtime. Change it while there is one thread.
ShownZone& shown_zone();

// "2026-11-21 13:00:00 +01:00", or "2026-11-21 12:00:00 UTC". nullopt: as readable_utc.
std::optional<std::string> shown_time(std::int64_t wall_ms);
// "13:00 +01:00" on the day of `now_ms`, else "2026-11-21 13:00 +01:00"; "12:00 UTC". With seconds in the hour after `now_ms`, in
// which the minute of a moment to come may have begun: "13:00:05 +01:00".
std::optional<std::string> shown_minute(std::int64_t wall_ms, std::int64_t now_ms);

// Which day "22:00" means: the last time that a clock showed 22:00, or the next one.
enum class TimeOfDay { last, next };
// "2026-11-26", "2026-11-26 22:00", also with seconds, T and Z, or "22:00". Returns ms since 1970; nullopt: the text is no time.
std::optional<std::int64_t> read_time(const std::string& text, TimeOfDay which, std::int64_t now_ms);

}  // namespace rlock
