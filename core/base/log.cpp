// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include "base/clock.h"
#include "base/moment.h"
#include "base/text.h"

#include <cstdint>
#include <utility>

#include <unistd.h>

namespace rlock {
namespace {

LogStyle& style()
{
  static LogStyle the_style;
  return the_style;
}

void write_line(std::string_view level, std::string_view line, const About& about)
{
  const bool is_json = style().format == LogFormat::json;
  const std::string whole = (is_json ? json_line(level, line, about, wall_clock_ms()) : "rlock: " + std::string(line)) + "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, whole.data(), whole.size());
}

std::string text_or_null(std::string_view text) { return text.empty() ? "null" : json_text(text); }

}  // namespace

void set_log_style(LogStyle new_style) { style() = std::move(new_style); }

const LogStyle& log_style() { return style(); }

void Log::error(std::string_view line, const About& about) const { write_line("error", line, about); }

void Log::notice(std::string_view line, const About& about) const
{
  if (m_verbosity != Verbosity::quiet) {
    write_line("notice", line, about);
  }
}

void Log::detail(std::string_view line, const About& about) const
{
  if (m_verbosity == Verbosity::verbose) {
    write_line("detail", line, about);
  }
}

std::string json_line(std::string_view level, std::string_view message, const About& about, std::int64_t time_ms)
{
  const std::string_view key = about.key.empty() ? std::string_view(style().key) : about.key;
  const std::string time = iso_utc(time_ms).value_or("");
  return "{\"time\":" + text_or_null(time) + ",\"level\":" + json_text(level) +
         ",\"event\":" + text_or_null(about.event) + ",\"key\":" + text_or_null(key) +
         ",\"message\":" + json_text(message) + "}";
}

}  // namespace rlock
