// SPDX-License-Identifier: Apache-2.0
// Durations as people type and read them: 10 (seconds), 1.5s, 200ms, 5m, 1h, 1d, 1m30s.
#pragma once

#include "base/clock.h"

#include <optional>
#include <string>
#include <string_view>

namespace rlock {

// nullopt for anything that is not such a duration, negative ones and those over ten years among them.
// Zero is a duration; whether it is a good one is for the caller to say.
std::optional<Millis> parse_duration(std::string_view text);

// The shortest exact form that parse_duration reads back: "30s", "1m30s", "250ms".
std::string show(Millis duration);

// For people: two units at most, rounded down. "2h 5m", "12s", "340ms".
std::string show_roughly(Millis duration);

}  // namespace rlock
