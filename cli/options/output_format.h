// SPDX-License-Identifier: Apache-2.0
// The format in which a verb prints.
#pragma once

#include "cli/options/options.h"
#include "lock/store.h"

#include <span>
#include <string>

namespace rlock::cli {

enum class OutputFormat { text, json, prometheus };

struct RawOutputFormat {
  Text output;
  Text format;  // --format, the former name of --output
  bool json = false;
};

void add_output_format_options(Options& options,
                               RawOutputFormat& raw);  // --output, --json, and --format
Result<OutputFormat> resolve_output_format(const RawOutputFormat& raw);

// --json, for verbs that print text or JSON.
void add_json_option(Options& options, bool& json);

}  // namespace rlock::cli
