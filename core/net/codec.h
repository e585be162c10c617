// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes RESP2. The only user of hiredis. Private to net.
#pragma once

#include "base/result.h"
#include "net/reply.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct redisReader;

namespace rlock {

std::string encode(std::span<const std::string_view> argv);

// Turns bytes into replies. Useless after an Error.
class Decoder {
 public:
  Decoder();

  void feed(std::string_view bytes);

  // The next whole reply; nullopt: more bytes are needed. Errors are ErrorCode::unreachable, and their text lacks the
  // subject: "answered with more than 64 MiB".
  Result<std::optional<Reply>> next();

 private:
  struct Free {
    void operator()(redisReader* reader) const;
  };
  std::unique_ptr<redisReader, Free> m_reader;
  std::size_t m_unfinished = 0;  // bytes fed since the last whole reply
};

}  // namespace rlock
