// SPDX-License-Identifier: Apache-2.0
// What `rlock list` does, and `rlock status` without a key.
#pragma once

#include "cli/options/output_format.h"
#include "cli/options/server.h"
#include "cli/output/colours.h"
#include "cli/output/lock_order.h"
#include "run/run_end.h"

#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

inline constexpr const char* every_lock = "*";  // a glob

struct ListOptions {
  std::string pattern;
  OutputFormat output_format = OutputFormat::text;
  SortBy sort = SortBy::key;
  Colours colours = Colours();
};

// The locks that are held and match the glob. ErrorCode::config: the server cannot list; `verb` is the verb that asked.
Result<std::vector<LockState>> held_locks(const OpenedStore& opened, const std::string& pattern, std::string_view verb);

// Tells a person that no lock matches the glob. Other formats are for programs, which see no output.
void tell_none_held(const ListOptions& options);

// Prints them. The exit code of `rlock list`.
Result<RunEnd> print_held_locks(const OpenedStore& opened, const ListOptions& options, std::string_view verb);

}  // namespace rlock::cli
