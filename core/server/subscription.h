// SPDX-License-Identifier: Apache-2.0
// Connections that only listen: one connection, or, in a cluster, a connection to each node that has some of the channels.
// Messages may be lost, so the caller waits by a deadline and then asks the server.
#pragma once

#include "base/fd.h"
#include "server/master_watch.h"
#include "server/receiver.h"

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace rlock {

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

  // Adds a channel that foreign clients use too. The server has confirmed the channel at the return.
  Result<Done> add(std::string_view channel, const CallLimits& limit);

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
