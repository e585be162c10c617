// SPDX-License-Identifier: Apache-2.0
// Encodes RESP2, and decodes it with hiredis, of which this is the only user. Private to net.
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

// What a server may make one reply cost: bytes, values (an array counts as one more) and arrays in arrays. Answers to a lock
// client are far smaller.
constexpr std::size_t longest_reply = std::size_t{16} << 20;
constexpr std::size_t most_values = std::size_t{1} << 17;
constexpr int deepest_array = 8;

// Turns bytes into replies. Useless after an Error.
class Decoder {
 public:
  Decoder();

  void feed(std::string_view bytes);

  // The next whole reply; nullopt: more bytes are needed. Errors are ErrorCode::unreachable, and their text lacks the
  // subject: "answered with more than 16 MiB or 131072 values".
  Result<std::optional<Reply>> next();

 private:
  struct State;
  struct Free {
    void operator()(State* state) const;
  };
  std::unique_ptr<State, Free> m_state;
};

}  // namespace rlock
