// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <string>

#include <unistd.h>

namespace rlock {
namespace {

void write_line(std::string_view line)
{
  const std::string whole = "rlock: " + std::string(line) + "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, whole.data(), whole.size());
}

}  // namespace

void Log::error(std::string_view line) const { write_line(line); }

void Log::notice(std::string_view line) const
{
  if (m_verbosity != Verbosity::quiet) {
    write_line(line);
  }
}

void Log::detail(std::string_view line) const
{
  if (m_verbosity == Verbosity::verbose) {
    write_line(line);
  }
}

}  // namespace rlock
