// SPDX-License-Identifier: Apache-2.0
// The format in which a verb prints.
// --sort.
// --color, and the variables that turn colours off.
// --log-format.
#pragma once

#include "cli/options/environment.h"
#include "cli/options/option_table.h"
#include "cli/output/output.h"
#include "cli/output/show.h"
#include "lock/names.h"
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

void add_sort_option(Options& options, Text& raw);

// By key when the option was not given. ErrorCode::usage: there is no such order.
Result<SortBy> resolve_sort(const Text& raw);

void add_color_option(Options& options, Text& raw);

// auto: colours where standard output is a terminal, unless NO_COLOR is set (no-color.org) or TERM is dumb.
// ErrorCode::usage: neither auto, always nor never.
Result<Colours> resolve_colours(const Text& raw, const Environment& environment);

void add_log_format_option(Options& options, Text& raw);

// Sets the format of all lines of this process on stderr. `lock`: the lock that the lines are about, unless a line names another;
// nullptr: none. ErrorCode::usage: there is no such format.
Result<Done> use_log_format(const Text& raw, const LockName* lock);

}  // namespace rlock::cli
