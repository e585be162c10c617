// SPDX-License-Identifier: Apache-2.0
// --notify.
#pragma once

#include "cli/options/options.h"

#include <string>

namespace rlock::cli {

inline constexpr const char* notify_help =
    "run CMD by /bin/sh once, when the run is over and the lock released, with RLOCK_OUTCOME (succeeded, failed, lost, "
    "forced, timed_out, busy, replaced, unreachable), RLOCK_EXIT_CODE, RLOCK_DURATION_MS and RLOCK_MESSAGE; it has 30s "
    "and changes no "
    "exit code";

void add_notify_option(Options& options, Text& raw, const char* help);

// Empty when the option was not given. ErrorCode::usage: the command is empty.
Result<std::string> resolve_notify(const Text& raw);

}  // namespace rlock::cli
