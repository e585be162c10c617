// SPDX-License-Identifier: Apache-2.0
#include "cli/output/columns.h"

#include "base/text.h"

#include <algorithm>

namespace rlock::cli {
namespace {

// The bytes of the first `count` characters.
std::string_view first(std::string_view text, std::size_t count)
{
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins_character(text[i]) && count-- == 0) {
      return text.substr(0, i);
    }
  }
  return text;
}

}  // namespace

std::size_t width(std::string_view text)
{
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string clipped(std::string_view text, std::size_t columns)
{
  if (width(text) <= columns) {
    return std::string(text);
  }
  return columns == 0 ? "" : std::string(first(text, columns - 1)) + "…";
}

std::string fitted(std::string_view text, std::size_t columns)
{
  const std::string shown = clipped(text, columns);
  return shown + std::string(columns - width(shown), ' ');
}

}  // namespace rlock::cli
