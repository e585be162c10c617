// SPDX-License-Identifier: Apache-2.0
// A Lua script of lua/ without its comment lines, and its SHA-1, by which the server knows the script.
#pragma once

#include <string>
#include <string_view>

namespace rlock {

struct Script {
  std::string_view name;           // KIND_VERB, or the name of a single script; for messages
  const std::string_view* blocks;  // static; the scripts share the blocks, because most of their text is the same
  std::string_view order;          // the indices of the blocks of the source, one byte each
  std::string_view sha1;           // the SHA-1 of the source: 40 lower-case hex digits, as SCRIPT LOAD returns

  [[nodiscard]] std::string source() const
  {
    std::string text;
    for (const char index : order) {
      text += blocks[static_cast<unsigned char>(index)];
    }
    return text;
  }
};

}  // namespace rlock
