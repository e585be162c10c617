// SPDX-License-Identifier: Apache-2.0
// --color, and the variables that turn colours off.
#pragma once

#include "cli/options/environment.h"
#include "cli/options/options.h"
#include "cli/output/colours.h"

namespace rlock::cli {

void add_color_option(Options& options, Text& raw);

// auto: colours where standard output is a terminal, unless NO_COLOR is set (no-color.org) or TERM is dumb.
// ErrorCode::usage: neither auto, always nor never.
Result<Colours> resolve_colours(const Text& raw, const Environment& environment);

}  // namespace rlock::cli
