// SPDX-License-Identifier: Apache-2.0
// The values and the help of options that several verbs share.
#pragma once

#include "base/defaults.h"
#include "cli/options/options.h"
#include "run/run.h"

#include <array>

namespace rlock::cli {

// One renewal_period(ttl) must be enough for a round trip, and the rest of the ttl for killing the job.
inline constexpr Millis shortest_ttl{100};
inline constexpr Millis longest_ttl = fence_memory;

inline constexpr DurationRule ttl_rule{"--ttl", shortest_ttl, longest_ttl, default_ttl};
inline constexpr DurationRule fixed_lease_rule{"--lease", shortest_ttl, longest_ttl, "5m"};
inline constexpr NumberRule busy_code_rule{"--conflict-exit-code", 0, 255, "0"};

inline constexpr const char* busy_code_help = "exit code when the lock is busy";

inline constexpr std::array on_lost_choices{Choice<OnLost>{"stop", OnLost::stop}, Choice<OnLost>{"warn", OnLost::warn}};

// The ttl that was given, or default_ttl.
Result<Millis> resolve_ttl(const Text& raw);

// The code that was given, or `default_code`.
Result<int> resolve_busy_code(const Text& raw, ExitCode default_code);

// The number of a signal, from its name or number. ErrorCode::usage names --signal.
Result<int> resolve_signal(std::string_view raw);

}  // namespace rlock::cli
