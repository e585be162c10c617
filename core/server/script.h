// SPDX-License-Identifier: Apache-2.0
// A Lua script of lua/ without its comment lines, with its SHA-1, by which the server knows it.
#pragma once

#include <string>
#include <string_view>

namespace rlock {

struct Script {
  std::string_view name;           // KIND_VERB or the name of a single script, for messages
  const std::string_view* blocks;  // static; shared by the scripts, because most of their text is the same
  std::string_view order;          // the source is these blocks, one byte for the index of each
  std::string_view sha1;           // of the source: 40 lower-case hex digits, as SCRIPT LOAD returns

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
