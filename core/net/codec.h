// SPDX-License-Identifier: Apache-2.0
// Encodes RESP2, and decodes RESP2 with hiredis. No other file uses hiredis. Private to net.
#pragma once

#include "base/result.h"
#include "net/reply.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rlock {

std::string encode(std::span<const std::string_view> argv);

// The limits of one reply: bytes, values (an array counts as one more) and the depth of arrays. Replies to a lock client are far
// smaller.
constexpr std::size_t longest_reply = std::size_t{16} << 20;
constexpr std::size_t most_values = std::size_t{1} << 17;
constexpr int deepest_array = 8;

// Turns bytes into replies. Useless after an Error.
class Decoder {
 public:
  Decoder();

  void feed(std::string_view bytes);

  // The next whole reply; nullopt: more bytes are needed. Errors: ErrorCode::unreachable, with a text without its subject:
  // "answered with more than 16 MiB or 131072 values".
  Result<std::optional<Reply>> next();

 private:
  struct State;
  struct Free {
    void operator()(State* state) const;
  };
  std::unique_ptr<State, Free> m_state;
};

}  // namespace rlock
