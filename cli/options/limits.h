// SPDX-License-Identifier: Apache-2.0
// What the verbs that take locks have in common: how long a lease may be, and how a busy one is told.
#pragma once

#include "cli/options/options.h"
#include "run/run.h"

#include <array>

namespace rlock::cli {

// A third of it has to be enough for a round trip, and the rest for killing the job.
inline constexpr Millis shortest_ttl{100};
// The server remembers the fencing number for 30 days; a longer lease could see it start anew.
inline constexpr Millis longest_ttl = std::chrono::hours{30 * 24};

inline constexpr DurationRule ttl_rule{"--ttl", shortest_ttl, longest_ttl, "30s"};
inline constexpr DurationRule fixed_lease_rule{"--lease", shortest_ttl, longest_ttl, "5m"};
inline constexpr NumberRule busy_code_rule{"--conflict-exit-code", 0, 255, "75"};

inline constexpr std::array on_lost_choices{Choice<OnLost>{"stop", OnLost::stop}, Choice<OnLost>{"warn", OnLost::warn}};

}  // namespace rlock::cli
