// SPDX-License-Identifier: Apache-2.0
// The options that choose the kind of lock.
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
// For a verb that takes plain locks only: the options are parsed, so that the verb can refuse them, and help hides them.
void add_hidden_mode_options(Options& options, RawMode& raw);

// ErrorCode::usage: two of the options exclude each other.
Result<Mode> resolve_mode(const RawMode& raw);

}  // namespace rlock::cli
