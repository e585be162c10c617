// SPDX-License-Identifier: Apache-2.0
// --label.
#pragma once

#include "cli/options/options.h"

#include <string>

namespace rlock::cli {

void add_label_option(Options& options, Text& raw);

// Empty when the option was not given. ErrorCode::usage: the label is longer than longest_label.
Result<std::string> resolve_label(const Text& raw);

}  // namespace rlock::cli
