// SPDX-License-Identifier: Apache-2.0
// What a request to a store is answered with, and what a store sends unasked. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rlock {

// One reply: a value or a tree of values, as RESP2 has them.
struct Reply {
  enum class Kind { nil, integer, text, error, array };

  Kind kind = Kind::nil;
  std::int64_t integer = 0;     // integer
  std::string text;             // text (simple or bulk string, binary-safe) and error
  std::vector<Reply> elements;  // array

  [[nodiscard]] bool is_error() const { return kind == Kind::error; }
};

// A message that was published on a channel.
struct Message {
  std::string channel;
  std::string text;
};

}  // namespace rlock
