// SPDX-License-Identifier: Apache-2.0
// Text in columns. A character is one column wide: what East Asian fonts do is not known here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rlock::cli {

// Characters, not bytes: UTF-8's continuation bytes take no column.
std::size_t width(std::string_view text);

// Exactly that many columns: filled with blanks, or cut, with … as the last character.
std::string fitted(std::string_view text, std::size_t columns);

// No more than that many.
std::string clipped(std::string_view text, std::size_t columns);

}  // namespace rlock::cli
