// SPDX-License-Identifier: Apache-2.0
#include "cli/options/output.h"

#include "base/log.h"

#include <array>

#include <unistd.h>

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

namespace {

constexpr std::array orders{Choice<SortBy>{"age", SortBy::age}, Choice<SortBy>{"ttl", SortBy::ttl},
                            Choice<SortBy>{"key", SortBy::key}, Choice<SortBy>{"waiting", SortBy::waiting}};

}  // namespace

void add_sort_option(Options& options, Text& raw)
{
  options.text("--sort", raw, "age|ttl|key|waiting",
               "first the oldest, the next to expire, by name, or the longest queue (key)");
}

Result<SortBy> resolve_sort(const Text& raw)
{
  return raw ? resolve_choice(*raw, "--sort", orders) : Result(SortBy::key);
}

namespace {

enum class When { automatic, always, never };
constexpr std::array times{Choice<When>{"auto", When::automatic}, Choice<When>{"always", When::always},
                           Choice<When>{"never", When::never}};

}  // namespace

void add_color_option(Options& options, Text& raw)
{
  options.text("--color", raw, "auto|always|never",
               "colours in text; auto: on a terminal, unless the variable NO_COLOR is not empty (auto)");
}

Result<Colours> resolve_colours(const Text& raw, const Environment& environment)
{
  const Result<When> when = raw ? resolve_choice(*raw, "--color", times) : Result(When::automatic);
  if (!when) {
    return when.error();
  }
  const bool suits =
      ::isatty(STDOUT_FILENO) == 1 && environment.value("NO_COLOR").empty() && environment.value("TERM") != "dumb";
  return Colours(*when == When::always || (*when == When::automatic && suits));
}

namespace {

constexpr std::array formats{Choice<LogFormat>{"text", LogFormat::text}, Choice<LogFormat>{"json", LogFormat::json}};

}  // namespace

void add_log_format_option(Options& options, Text& raw)
{
  options.text("--log-format", raw, "text|json", "format of the lines on stderr; json: one object a line (text)");
}

Result<Done> use_log_format(const Text& raw, const LockName* lock)
{
  if (!raw) {
    return Done{};
  }
  const Result<LogFormat> format = resolve_choice(*raw, "--log-format", formats);
  if (!format) {
    return format.error();
  }
  set_log_style({.format = *format, .key = lock != nullptr ? lock->text() : ""});
  return Done{};
}

}  // namespace rlock::cli
