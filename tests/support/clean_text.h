// SPDX-License-Identifier: Apache-2.0
// Whether a text is safe on a terminal. This definition is independent of core/base/text.h, which the tests check.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace rlock::test {

// The characters that change the direction of text, and those without width, as UTF-8.
inline constexpr std::array<std::string_view, 15> misleading{"\u061c", "\u200b", "\u200e", "\u200f", "\u202a",
                                                             "\u202b", "\u202c", "\u202d", "\u202e", "\u2060",
                                                             "\u2066", "\u2067", "\u2068", "\u2069", "\ufeff"};

// True if the text has no control character but the end of a line, no C1 (as UTF-8 or as a byte), no byte that UTF-8 never has,
// and no misleading character.
inline bool is_clean(const std::string& text)
{
  for (const std::string_view character : misleading) {
    if (text.find(character) != std::string::npos) {
      return false;
    }
  }
  unsigned before = 0;
  for (const char c : text) {
    const unsigned byte = static_cast<unsigned char>(c);
    const bool is_control =
        (byte < 0x20 && c != '\n') || byte == 0x7f || (before == 0xc2 && byte >= 0x80 && byte < 0xa0);
    const bool is_stray = (byte >= 0x80 && byte < 0xc0 && before < 0x80) || byte >= 0xf8;
    if (is_control || is_stray) {
      return false;
    }
    before = byte;
  }
  return true;
}

}  // namespace rlock::test
