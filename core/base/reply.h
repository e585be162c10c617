// SPDX-License-Identifier: Apache-2.0
// What a request to a store is answered with, and what a store sends unasked. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rlock {

// One reply: a value or a tree of values, as RESP2 has them.
struct Reply {
  enum class Kind { nil, integer, text, error, array };

  Kind kind = Kind::nil;
  // Of a text from the record engine: a script gets it as a table. The decoder of redis does not note it.
  bool is_status = false;
  std::int64_t integer = 0;     // integer
  std::string text;             // text (simple or bulk string, binary-safe) and error
  std::vector<Reply> elements;  // array

  static Reply of(std::int64_t number) { return {.kind = Kind::integer, .integer = number}; }
  static Reply of(std::string words) { return {.kind = Kind::text, .text = std::move(words)}; }
  static Reply status(std::string words) { return {.kind = Kind::text, .is_status = true, .text = std::move(words)}; }
  static Reply error(std::string words) { return {.kind = Kind::error, .text = std::move(words)}; }
  static Reply array(std::vector<Reply> parts = {}) { return {.kind = Kind::array, .elements = std::move(parts)}; }
  static Reply list(const std::vector<std::string>& texts)
  {
    Reply all = array();
    for (const std::string& text : texts) {
      all.elements.push_back(of(text));
    }
    return all;
  }

  friend bool operator==(const Reply&, const Reply&) = default;
  [[nodiscard]] bool is_error() const { return kind == Kind::error; }
};

// A message that was published on a channel.
struct Message {
  std::string channel;
  std::string text;
};

}  // namespace rlock
