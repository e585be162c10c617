// SPDX-License-Identifier: Apache-2.0
// RLOCK_HELD: the locks of all ancestor processes, the outermost first, one line "TOKEN KEY" for each. A token contains no
// space; a key may. Pure functions.
#pragma once

#include <string_view>
#include <vector>

namespace rlock {

inline constexpr std::string_view held_locks_variable = "RLOCK_HELD";

// A line of the value, as views into the value that was parsed.
struct HeldLockLine {
  std::string_view whole;
  std::string_view token;
  std::string_view key;  // empty: the line is invalid, and so is its token
};
std::vector<HeldLockLine> parse_held_locks(std::string_view value);

}  // namespace rlock
