// SPDX-License-Identifier: Apache-2.0
#include "cli/output/logging.h"

#include "base/log.h"

#include <array>

namespace rlock::cli {
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
