// SPDX-License-Identifier: Apache-2.0
// --log-format.
#pragma once

#include "cli/options/options.h"
#include "lock/names.h"

namespace rlock::cli {

void add_log_format_option(Options& options, Text& raw);

// Sets the format of all lines of this process on stderr. `lock`: the lock that the lines are about, unless a line names another;
// nullptr: none. ErrorCode::usage: there is no such format.
Result<Done> use_log_format(const Text& raw, const LockName* lock);

}  // namespace rlock::cli
