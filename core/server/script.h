// SPDX-License-Identifier: Apache-2.0
// A Lua script as it stands in lua/, byte for byte, with the name the server knows it by.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace rlock {

struct Script {
  std::string_view name;                  // KIND_VERB or that of a single script, for messages
  std::array<std::string_view, 6> parts;  // one text
  std::string_view sha1;                  // of it: 40 lower-case hex digits, as SCRIPT LOAD would answer

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
