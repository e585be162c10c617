// SPDX-License-Identifier: Apache-2.0
// How a verb prints what it has found.
#pragma once

#include "cli/options/environment.h"
#include "cli/options/option_table.h"
#include "cli/output/output.h"
#include "cli/output/show.h"

#include <optional>

namespace rlock::cli {

enum class OutputFormat { text, json, prometheus };

struct RawOutputFormat {
  std::optional<OutputFormat> output;
  std::optional<OutputFormat> former;  // of --format, the former name of --output

  [[nodiscard]] OutputFormat format() const { return output.value_or(former.value_or(OutputFormat::text)); }
};
void add_output_format_options(OptionTable& options, RawOutputFormat& raw);  // --output, --json, and --format

// --json, for verbs that print text or JSON.
constexpr OptionRow<bool> json_row(const char* help) { return {{.names = "--json", .help = help}, read_value}; }
inline constexpr OptionRow<bool> json_lines_row = json_row("one JSON object a line, described by rlock help json");

inline constexpr OptionRow<SortBy> sort_row{
    {.names = "--sort",
     .value = "age|ttl|key|waiting",
     .help = "first the oldest, the next to expire, by name, or the longest queue (key)"},
    choose<SortBy::age, SortBy::ttl, SortBy::key, SortBy::waiting>};

// --utc, for verbs that print times for people; sets shown_zone().
void add_utc_option(OptionTable& options);

enum class ColorWhen { automatic, always, never };
inline constexpr OptionRow<ColorWhen> color_row{
    {.names = "--color",
     .value = "auto|always|never",
     .help = "colors in text; auto: on a terminal, unless the variable NO_COLOR is not empty (auto)"},
    choose<ColorWhen::automatic, ColorWhen::always, ColorWhen::never>};

// automatic: colors where standard output is a terminal, unless NO_COLOR is set (no-color.org) or TERM is dumb.
Colors resolve_colors(ColorWhen when, const Environment& environment);

}  // namespace rlock::cli
