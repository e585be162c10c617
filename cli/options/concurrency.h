// SPDX-License-Identifier: Apache-2.0
// --latest and --cancel-in-progress: which of several runs goes on.
#pragma once

#include "cli/options/options.h"
#include "run/run.h"

namespace rlock::cli {

struct RawConcurrency {
  bool latest = false;
  bool cancel_in_progress = false;
};

void add_concurrency_options(Options& options, RawConcurrency& raw);

// Sets the fields of `request`, of which locks, kind, server and wait are known already. ErrorCode::usage: they are about the
// one queue, or the one holder, of a lock.
Result<Done> resolve_concurrency(const RawConcurrency& raw, RunRequest& request);

}  // namespace rlock::cli
