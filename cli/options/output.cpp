// SPDX-License-Identifier: Apache-2.0
#include "cli/options/output.h"

#include "base/shown_time.h"
#include "lock/lock_kind.h"

#include <unistd.h>
#include <algorithm>

namespace rlock::cli {
namespace {

// In a config file, --format may be the layout of locks on the server.
bool is_layout(std::string_view format)
{
  return format == "redisson" || format == "string" ||
         (!format.empty() && std::ranges::count(native_formats, format) > 0);
}

Result<Done> read_former(const Given& given, RawOutputFormat& raw)
{
  return is_layout(given.value)
             ? Result(Done{})
             : choose_field<&RawOutputFormat::former, OutputFormat::text, OutputFormat::json, OutputFormat::prometheus>(
                   given, raw);
}

Result<Done> print_json(const Given&, RawOutputFormat& raw)
{
  raw.output = OutputFormat::json;
  return Done{};
}

constexpr OptionRow<RawOutputFormat> output_format_rows[] = {
    {{.names = "-o,--output",
      .value = "text|json|prometheus",
      .help = "json: one object a line, described by rlock help json; prometheus: for a textfile collector (text)",
      .excludes = {"--json", " (leave out --json)"},
      .is_neutral = [](std::string_view value) { return value == "json"; }},
     choose_field<&RawOutputFormat::output, OutputFormat::text, OutputFormat::json, OutputFormat::prometheus>},
    {{.names = "--json", .help = "the same as --output json"}, print_json},
};

constexpr OptionRow<RawOutputFormat> former_row{
    {.names = "--format",
     .value = "text|json|prometheus",
     .excludes = {"--json", " (leave out --json)"},
     .is_neutral = [](std::string_view value) { return value == "json" || is_layout(value); }},
    read_former};

constexpr OptionRow<ShownZone> utc_row{
    {.names = "--utc", .help = "times in UTC; else they are local, with the offset of the zone"},
    [](const Given&, ShownZone& zone) {
      zone = ShownZone::utc;
      return Result(Done{});
    }};

}  // namespace

void add_output_format_options(OptionTable& options, RawOutputFormat& raw)
{
  options.add(output_format_rows, raw);
  options.add(former_row, raw, "");
}

void add_utc_option(OptionTable& options) { options.add(utc_row, shown_zone()); }

Colors resolve_colors(ColorWhen when, const Environment& environment)
{
  const bool suits =
      ::isatty(STDOUT_FILENO) == 1 && environment.value("NO_COLOR").empty() && environment.value("TERM") != "dumb";
  return Colors(when == ColorWhen::always || (when == ColorWhen::automatic && suits));
}

}  // namespace rlock::cli
