// SPDX-License-Identifier: Apache-2.0
// The glob of `rlock list`, for stores that know no globs. Private to the stores of records.
#pragma once

#include <fnmatch.h>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::record {

// Keeps the names that the glob matches (fnmatch(3)), in their order.
inline void keep_matching(std::vector<std::string>& names, std::string_view glob)
{
  const std::string pattern(glob);
  std::erase_if(names, [&](const std::string& name) { return ::fnmatch(pattern.c_str(), name.c_str(), 0) != 0; });
}

}  // namespace rlock::record
