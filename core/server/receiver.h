// SPDX-License-Identifier: Apache-2.0
// One connection that listens. Private to wire.
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

// How a channel is listened to. One that is `sharded` belongs to a slot of a cluster: only who has the slot serves it, and
// says so when it goes elsewhere.
enum class Hearing { plain, sharded };

// Not thread-safe; may move between threads. After an Error: drop it.
class Receiver {
 public:
  explicit Receiver(Connection connection, Hearing hearing) : m_connection(std::move(connection)), m_hearing(hearing) {}

  // Returns once the server has confirmed all of them; or its refusal, after which the receiver is as good as before. Where the
  // server knows no sharded channels (Redis 6) they are plain from then on.
  Result<std::optional<Reply>> listen(std::span<const std::string_view> channels, const CallLimits& limit);

  // A channel on which foreign clients speak too, which do so in either way.
  Result<Done> listen_to_all(std::string_view channel, const CallLimits& limit);

  // The next message; nullopt when none came by the limit's deadline.
  Result<std::optional<Message>> next(const CallLimits& limit);

  [[nodiscard]] int fd() const { return m_connection.fd(); }
  [[nodiscard]] const std::string& where() const { return m_connection.where(); }

 private:
  Result<std::optional<Reply>> subscribe(Hearing hearing, std::span<const std::string_view> channels,
                                         const CallLimits& limit);
  Result<bool> take_in(Reply reply);

  Connection m_connection;
  Hearing m_hearing;
  std::deque<Message> m_early;  // came while a further channel was being confirmed
};

}  // namespace rlock
