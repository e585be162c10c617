// SPDX-License-Identifier: Apache-2.0
// Text in columns. Every character counts as one column wide, also East Asian characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rlock::cli {

// The number of characters, not bytes.
std::size_t width(std::string_view text);

// Exactly `columns` wide: filled with blanks, or cut, with … as the last character.
std::string fitted(std::string_view text, std::size_t columns);

// At most `columns` wide.
std::string clipped(std::string_view text, std::size_t columns);

}  // namespace rlock::cli
