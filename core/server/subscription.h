// SPDX-License-Identifier: Apache-2.0
// Connections that only listen: one, or in a cluster one to each node that has some of the channels. A message is a hint:
// whoever waits on it waits bounded and asks.
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
  // Connects, subscribes and waits until the server has confirmed every channel: what is published
  // after this returns is heard.
  static Result<Subscription> open(const Endpoint& endpoint, std::span<const std::string_view> channels,
                                   const Clock& clock, const CallLimits& limit);

  // One receiver at least; `by_slot` says which of them hears a slot's channels, and is empty where one hears all.
  Subscription(std::vector<Receiver> receivers, std::map<unsigned, std::size_t> by_slot, const Clock& clock);

  // One channel more, which foreign clients use as well; confirmed when this returns.
  Result<Done> add(std::string_view channel, const CallLimits& limit);

  // Of one receiver: from now on also an Error when that says that the server is no longer the right one.
  void heed(MasterWatch watch);

  // The next message; nullopt when none came by the limit's deadline. After an Error, which is also that a channel is served
  // elsewhere now: drop it.
  Result<std::optional<Message>> next(const CallLimits& limit);

  [[nodiscard]] int fd() const { return m_any ? m_any.get() : m_receivers.front().fd(); }

 private:
  bool has_moved();

  std::vector<Receiver> m_receivers;
  std::map<unsigned, std::size_t> m_by_slot;
  const Clock* m_clock;
  std::optional<MasterWatch> m_watch;
  Fd m_any;  // epoll; where there are several connections
};

}  // namespace rlock
