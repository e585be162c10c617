// SPDX-License-Identifier: Apache-2.0
// Whether a text is safe on a terminal. Not the definition of core/base/text.h, which is what the tests check.
#pragma once

#include <cstddef>
#include <string>

namespace rlock::test {

// No control character but the end of a line, no C1, whether as UTF-8 or as a byte, and no byte that UTF-8 never has.
inline bool is_clean(const std::string& text)
{
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
