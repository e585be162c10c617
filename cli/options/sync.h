// SPDX-License-Identifier: Apache-2.0
// --sync.
#pragma once

#include "cli/options/options.h"
#include "store/open.h"

namespace rlock::cli {

void add_sync_option(Options& options, Text& raw);

// The number of replicas; 0 when the option was not given. ErrorCode::usage: there are several servers, which have no
// replica in common.
Result<unsigned> resolve_sync(const Text& raw, const ServerSpec& server);

}  // namespace rlock::cli
