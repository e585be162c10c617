// SPDX-License-Identifier: Apache-2.0
#include "cli/output/colours.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr std::array<std::string_view, 5> sequences{"\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[7m"};
constexpr std::string_view normal = "\x1b[0m";

}  // namespace

std::string Colours::paint(Style style, std::string_view text) const
{
  if (!m_on || text.empty()) {
    return std::string(text);
  }
  return std::string(sequences[static_cast<std::size_t>(style)]).append(text).append(normal);
}

}  // namespace rlock::cli
