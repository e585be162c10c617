// SPDX-License-Identifier: Apache-2.0
// One RESP2 reply as a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rlock {

struct Reply {
  enum class Kind { nil, integer, text, error, array };

  Kind kind = Kind::nil;
  std::int64_t integer = 0;     // integer
  std::string text;             // text (simple or bulk string, binary-safe) and error
  std::vector<Reply> elements;  // array

  [[nodiscard]] bool is_error() const { return kind == Kind::error; }
};

}  // namespace rlock
