// SPDX-License-Identifier: Apache-2.0
// --history.
#pragma once

#include "cli/options/options.h"

#include <optional>

namespace rlock::cli {

void add_history_option(Options& options, Text& raw);

// nullopt when the option was not given; else at least default_history.
Result<std::optional<Millis>> resolve_history(const Text& raw);

}  // namespace rlock::cli
