// SPDX-License-Identifier: Apache-2.0
// Times of the wall clock as text, in UTC. nullopt: the time is before 1970, after the year 9999, or 0 ("not recorded").
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rlock {

std::optional<std::string> iso_utc(std::int64_t wall_ms);       // "2026-11-21T12:00:00.123Z"
std::optional<std::string> readable_utc(std::int64_t wall_ms);  // "2026-11-21 12:00:00 UTC"

}  // namespace rlock
