// SPDX-License-Identifier: Apache-2.0
// Connections that only listen: one connection, or, in a cluster, a connection to each node that has some of the channels.
// Messages may be lost, so the caller waits by a deadline and then asks the server.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "base/fd.h"
#include "base/reply.h"
#include "redis/connection.h"

namespace rlock {

// A connection that listens to channels. Private to redis.

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

  // Listens to the channels in both kinds, because foreign clients publish in either. Sharded channels must be of one slot.
  Result<Done> listen_to_both_kinds(std::span<const std::string_view> channels, const CallLimits& limit);

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

// Receives the message of a sentinel that another server has become the master. The message may come late or never. Private to
// redis.

// Not thread-safe except for `moved`; may move between threads.
class MasterWatch {
 public:
  // After the return, the watch receives the message about each master of that name that is not at `now`, and sets `moved`.
  static Result<MasterWatch> open(Connection sentinel, const std::string& name, const HostPort& now,
                                  std::shared_ptr<std::atomic<bool>> moved, const CallLimits& limit);

  // Reads the messages that have arrived, without waiting. Useless after an Error.
  Result<bool> has_moved();

  [[nodiscard]] int fd() const { return m_sentinel.fd(); }  // readable: call has_moved()

 private:
  MasterWatch(Connection sentinel, std::string prefix, std::string now, std::shared_ptr<std::atomic<bool>> moved);
  [[nodiscard]] bool announces_other_master(const Reply& message) const;

  Connection m_sentinel;
  std::string m_prefix;  // how messages about this master begin: its name and a blank
  std::string m_now;     // how a message about the present master ends
  std::shared_ptr<std::atomic<bool>> m_moved;
};

// Not thread-safe; may move between threads.
class Subscription {
 public:
  // Connects, subscribes, and waits until the server has confirmed every channel. The subscription receives the messages that are
  // published after the return.
  static Result<Subscription> open(const Endpoint& endpoint, std::span<const std::string_view> channels,
                                   const Clock& clock, const CallLimits& limit);

  // At least one receiver. `by_slot`: the index of the receiver for the channels of a slot; empty: one receiver has all
  // channels.
  Subscription(std::vector<Receiver> receivers, std::map<unsigned, std::size_t> by_slot, const Clock& clock);

  // Adds channels that foreign clients use too. The server has confirmed the channels at the return.
  Result<Done> add(std::span<const std::string_view> channels, const CallLimits& limit);

  // Call this for a single receiver. From now on next() also returns an Error when the watch learns of another master.
  void set_master_watch(MasterWatch watch);

  // The next message; nullopt: none arrived by the deadline. An Error also means that a channel has moved to another server; the
  // subscription is useless after an Error.
  Result<std::optional<Message>> next(const CallLimits& limit);

  [[nodiscard]] int fd() const { return m_any ? m_any.get() : m_receivers.front().fd(); }

 private:
  bool has_moved();

  std::vector<Receiver> m_receivers;
  std::map<unsigned, std::size_t> m_by_slot;
  const Clock* m_clock;
  std::optional<MasterWatch> m_watch;
  Fd m_any;  // an epoll descriptor, if there are several connections
};

}  // namespace rlock
