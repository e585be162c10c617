// SPDX-License-Identifier: Apache-2.0
// Receives the messages to one owner from several servers.
#pragma once

#include "base/fd.h"
#include "lock/store.h"
#include "store/quorum/quorum.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace rlock {

class QuorumListener final : public Listener {
 public:
  // `listeners`: one for each server, which receive the releases of all `locks` already. With fewer than `least` listeners left,
  // heard() returns an Error. A message is passed on after a pause of `backoff`, because all waiters receive the message at once,
  // from one server sooner than from the next.
  QuorumListener(std::vector<std::unique_ptr<Listener>> listeners, std::size_t locks, std::size_t least,
                 std::shared_ptr<Backoff> backoff);

  [[nodiscard]] int fd() const override { return m_epoll.get(); }
  Result<Hints> heard(const Clock& clock) override;
  Result<Done> hear_releases(std::size_t, const CallLimits&) override { return Done{}; }
  Result<Done> hear_takings(std::size_t which, const CallLimits& limit) override;

 private:
  Result<Done> enough_left() const;

  std::vector<std::unique_ptr<Listener>> m_listeners;
  std::size_t m_locks;
  std::size_t m_least;
  std::shared_ptr<Backoff> m_backoff;
  Fd m_epoll;
};

}  // namespace rlock
