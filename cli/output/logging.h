// SPDX-License-Identifier: Apache-2.0
// --log-format.
#pragma once

#include "cli/options/options.h"
#include "lock/names.h"

namespace rlock::cli {

void add_log_format_option(Options& options, Text& raw);

// From here on all lines of this process are written like that. `lock`: what they are about, unless they say otherwise.
// ErrorCode::usage.
Result<Done> use_log_format(const Text& raw, const LockName* lock);

}  // namespace rlock::cli
