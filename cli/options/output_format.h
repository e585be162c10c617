// SPDX-License-Identifier: Apache-2.0
// For whom states of locks are printed.
#pragma once

#include "cli/options/options.h"
#include "lock/store.h"

#include <span>
#include <string>

namespace rlock::cli {

enum class OutputFormat { text, json, prometheus };

struct RawOutputFormat {
  Text output;
  Text format;  // what --output was called
  bool json = false;
};

void add_output_format_options(Options& options,
                               RawOutputFormat& raw);  // --output, --json, and --format, which --output was called
Result<OutputFormat> resolve_output_format(const RawOutputFormat& raw);

}  // namespace rlock::cli
