// SPDX-License-Identifier: Apache-2.0
// How long a verb waits for a busy lock.
#pragma once

#include "cli/options/options.h"

namespace rlock::cli {

struct RawWaitOptions {
  bool no_wait = false;
  Text wait;
};

void add_wait_options(Options& options, RawWaitOptions& raw);  // -n and -w

// Missing: for ever; zero: not at all. ErrorCode::usage: --no-wait and --wait exclude each other.
Result<std::optional<Millis>> resolve_wait_options(const RawWaitOptions& raw);

}  // namespace rlock::cli
