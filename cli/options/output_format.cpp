// SPDX-License-Identifier: Apache-2.0
#include "cli/options/output_format.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr std::array output_formats{Choice<OutputFormat>{"text", OutputFormat::text},
                                    Choice<OutputFormat>{"json", OutputFormat::json},
                                    Choice<OutputFormat>{"prometheus", OutputFormat::prometheus}};

}  // namespace

void add_output_format_options(Options& options, RawOutputFormat& raw)
{
  options.text("-o,--output", raw.output, "text|json|prometheus",
               "json: one object a line, described by rlock help json; prometheus: for a textfile collector (text)");
  options.flag("--json", raw.json, "the same as --output json");
  options.in("").text("--format", raw.format, "text|json|prometheus", "");
}

void add_json_option(Options& options, bool& json)
{
  options.flag("--json", json, "one JSON object a line, described by rlock help json");
}

Result<OutputFormat> resolve_output_format(const RawOutputFormat& raw)
{
  // In a config file, --format may be the layout of locks on the server.
  const bool is_layout = raw.format == "redisson" || raw.format == "string";
  const Text& output = raw.output || is_layout ? raw.output : raw.format;
  const Result<OutputFormat> output_format = output ? resolve_choice(*output, "--output", output_formats)
                                                    : Result(raw.json ? OutputFormat::json : OutputFormat::text);
  if (output_format && raw.json && *output_format != OutputFormat::json) {
    return usage("--json and --output " + *output + " exclude each other (leave out --json)");
  }
  return output_format;
}

}  // namespace rlock::cli
