// SPDX-License-Identifier: Apache-2.0
// --label.
#pragma once

#include "cli/options/options.h"

#include <string>

namespace rlock::cli {

void describe_label(Options& options, Text& typed);

// ErrorCode::usage for a label that is longer than longest_label.
Result<std::string> resolve_label(const Text& typed);

}  // namespace rlock::cli
