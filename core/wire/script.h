// SPDX-License-Identifier: Apache-2.0
// A Lua script as it stands in lua/, byte for byte, with the name the server knows it by.
#pragma once

#include <string_view>

namespace rlock {

struct Script {
  std::string_view name;  // the file's name without .lua, for messages
  std::string_view source;
  std::string_view sha1;  // 40 lower-case hex digits, as SCRIPT LOAD would answer
};

}  // namespace rlock
