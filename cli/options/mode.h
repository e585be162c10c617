// SPDX-License-Identifier: Apache-2.0
// The options that say which kind of lock is meant.
#pragma once

#include "cli/options/options.h"
#include "lock/mode.h"

namespace rlock::cli {

struct RawMode {
  bool shared = false;
  bool exclusive = false;
  Text permits;
  Text format;
};

void add_mode_options(Options& options, RawMode& raw);
// For what can be under a lock for one at a time alone: the others are understood, so that they can be refused, and not
// shown.
void add_hidden_mode_options(Options& options, RawMode& raw);

// ErrorCode::usage where two of them exclude each other.
Result<Mode> resolve_mode(const RawMode& raw);

}  // namespace rlock::cli
