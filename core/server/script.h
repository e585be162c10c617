// SPDX-License-Identifier: Apache-2.0
// A Lua script of lua/ without its comment lines, with its SHA-1, by which the server knows it.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace rlock {

struct Script {
  std::string_view name;                  // KIND_VERB or the name of a single script, for messages
  std::array<std::string_view, 7> parts;  // joined they are the source
  std::string_view sha1;                  // of the source: 40 lower-case hex digits, as SCRIPT LOAD returns

  [[nodiscard]] std::string source() const
  {
    std::string text;
    for (const std::string_view part : parts) {
      text += part;
    }
    return text;
  }
};

}  // namespace rlock
