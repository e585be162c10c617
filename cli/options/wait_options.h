// SPDX-License-Identifier: Apache-2.0
// How long a busy lock is waited for.
#pragma once

#include "cli/options/options.h"

namespace rlock::cli {

struct TypedPatience {
  bool no_wait = false;
  Text wait;
};

void describe_patience(Options& options, TypedPatience& typed);  // -n and -w

// Missing: for ever; zero: not at all.
Result<std::optional<Millis>> meant_patience(const TypedPatience& typed);

}  // namespace rlock::cli
