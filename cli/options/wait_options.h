// SPDX-License-Identifier: Apache-2.0
// How long a busy lock is waited for.
#pragma once

#include "cli/options/options.h"

namespace rlock::cli {

struct RawPatience {
  bool no_wait = false;
  Text wait;
};

void describe_patience(Options& options, RawPatience& typed);  // -n and -w

// Missing: for ever; zero: not at all.
Result<std::optional<Millis>> resolve_patience(const RawPatience& typed);

}  // namespace rlock::cli
