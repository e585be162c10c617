// SPDX-License-Identifier: Apache-2.0
#include "cli/output/logging.h"

#include "base/log.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr std::array formats{Choice<LogFormat>{"text", LogFormat::text}, Choice<LogFormat>{"json", LogFormat::json}};

}  // namespace

void describe_log_format(Options& options, Text& typed)
{
  options.text("--log-format", typed, "text|json", "of the lines on stderr; json: one object a line (text)");
}

Result<Done> use_log_format(const Text& typed, const LockName* lock)
{
  if (!typed) {
    return Done{};
  }
  const Result<LogFormat> format = resolve_choice(*typed, "--log-format", formats);
  if (!format) {
    return format.error();
  }
  set_log_style({.format = *format, .key = lock != nullptr ? lock->text() : ""});
  return Done{};
}

}  // namespace rlock::cli
