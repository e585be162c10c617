// SPDX-License-Identifier: Apache-2.0
// A second connection that only listens. A message is a hint: whoever waits on it waits bounded
// and asks.
#pragma once

#include "wire/connection.h"

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rlock {

struct Message {
  std::string channel;
  std::string text;
};

// Not thread-safe; may move between threads.
class Subscription {
 public:
  // Connects, subscribes and waits until the server has confirmed every channel: what is published
  // after this returns is heard.
  static Result<Subscription> open(const Endpoint& endpoint,
                                   std::span<const std::string_view> channels, const Clock& clock,
                                   const Limit& limit);

  // One channel more; confirmed when this returns.
  Result<Done> add(std::string_view channel, const Limit& limit);

  // The next message; nullopt when none came by the limit's deadline. After an Error: drop it.
  Result<std::optional<Message>> next(const Limit& limit);

  [[nodiscard]] int fd() const { return m_connection.fd(); }

 private:
  explicit Subscription(Connection connection) : m_connection(std::move(connection)) {}
  Result<Done> confirm(std::size_t channels, const Limit& limit);

  Connection m_connection;
  std::deque<Message> m_early;  // came while a further channel was being confirmed
};

}  // namespace rlock
