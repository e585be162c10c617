// SPDX-License-Identifier: Apache-2.0
#include "lock/held_locks.h"

#include <algorithm>

namespace rlock {

std::vector<HeldLockLine> parse_held_locks(std::string_view value)
{
  std::vector<HeldLockLine> lines;
  while (!value.empty()) {
    const std::string_view line = value.substr(0, value.find('\n'));
    value.remove_prefix(std::min(value.size(), line.size() + 1));
    const auto space = line.find(' ');
    const bool is_valid = space != std::string_view::npos && space > 0;
    lines.push_back({.whole = line,
                     .token = is_valid ? line.substr(0, space) : std::string_view{},
                     .key = is_valid ? line.substr(space + 1) : std::string_view{}});
  }
  return lines;
}

}  // namespace rlock
