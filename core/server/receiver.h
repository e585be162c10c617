// SPDX-License-Identifier: Apache-2.0
// A connection that listens to channels. Private to server.
#pragma once

#include "net/connection.h"

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

// A sharded channel belongs to a slot of a cluster: only the master of the slot serves the channel, and tells the listeners when
// the slot moves.
enum class ChannelKind { plain, sharded };

// Not thread-safe; may move between threads. Useless after an Error.
class Receiver {
 public:
  explicit Receiver(Connection connection, ChannelKind kind) : m_connection(std::move(connection)), m_kind(kind) {}

  // Subscribes, and returns when the server has confirmed all channels. A Reply is the error reply of the server, after which the
  // receiver is still usable. If the server has no sharded channels (Redis 6), the receiver uses plain channels from then on.
  Result<std::optional<Reply>> listen(std::span<const std::string_view> channels, const CallLimits& limit);

  // Listens to the channel in both kinds, because foreign clients publish in either.
  Result<Done> listen_to_both_kinds(std::string_view channel, const CallLimits& limit);

  // The next message; nullopt: none came by the deadline.
  Result<std::optional<Message>> next(const CallLimits& limit);

  [[nodiscard]] int fd() const { return m_connection.fd(); }
  [[nodiscard]] const std::string& where() const { return m_connection.where(); }

 private:
  Result<std::optional<Reply>> subscribe(ChannelKind kind, std::span<const std::string_view> channels,
                                         const CallLimits& limit);
  Result<bool> handle_push(Reply reply);

  Connection m_connection;
  ChannelKind m_kind;
  std::deque<Message> m_early;  // messages that arrived before the server had confirmed a further channel
};

}  // namespace rlock
