// SPDX-License-Identifier: Apache-2.0
// Encodes RESP2, and decodes RESP2 with hiredis. No other file uses hiredis. Private to redis.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include "base/reply.h"
#include "base/result.h"

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

// What an error reply means to a lock client. The texts are those of Redis 6.2 to 8.

// The error of a reply. `where`: the server, as Endpoint::shown. The table in codec.cpp maps the code of the reply to an
// ErrorCode; an unknown code is ErrorCode::unreachable. Redis 6.2 wraps the code of an error inside a script (`ERR Error running script ... -READONLY
// ...`): then the first ` -CODE ` counts. A command that is refused or missing inside a script sets Error::script_line, because
// the text names neither the command nor the key.
Error error_from_reply(std::string_view text, std::string_view where);

bool is_missing_rule(
    const Error&
        error);  // true: the ACL of the user lacks a right; false: the user could not log in, or another reason

bool is_unknown_script(std::string_view text);   // NOSCRIPT, wrapped or not
bool is_unknown_command(std::string_view text);  // the server does not have the command, or has it renamed

}  // namespace rlock
