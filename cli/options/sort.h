// SPDX-License-Identifier: Apache-2.0
// --sort.
#pragma once

#include "cli/options/options.h"
#include "cli/output/lock_order.h"

namespace rlock::cli {

void add_sort_option(Options& options, Text& raw);

// By key when the option was not given. ErrorCode::usage: there is no such order.
Result<SortBy> resolve_sort(const Text& raw);

}  // namespace rlock::cli
