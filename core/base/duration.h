// SPDX-License-Identifier: Apache-2.0
// Durations as people type and read them: 10 (seconds), 1.5s, 200ms, 5m, 1h, 1d, 2w, 1m30s; also sec, second(s), min, minute(s),
// hour(s), day(s), week(s). Pure functions.
#pragma once

#include "base/clock.h"

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace rlock {

inline constexpr Millis longest_duration = std::chrono::hours{10 * 366 * 24};  // about ten years

enum class DurationFlaw { malformed, too_long };  // too_long: over longest_duration

// Negative durations are malformed. Zero is a duration; the caller decides whether it is allowed.
std::variant<Millis, DurationFlaw> read_duration(std::string_view text);

// The same; nullopt for both flaws.
std::optional<Millis> parse_duration(std::string_view text);

// The shortest exact form that parse_duration reads back: "30s", "1m30s", "250ms".
std::string show(Millis duration);

// A readable form: two units at most, rounded down. "2h 5m", "12s", "340ms".
std::string show_roughly(Millis duration);

}  // namespace rlock
