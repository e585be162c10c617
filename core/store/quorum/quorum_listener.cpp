// SPDX-License-Identifier: Apache-2.0
#include "store/quorum/quorum_listener.h"

#include <algorithm>
#include <utility>

#include <sys/epoll.h>

namespace rlock {

QuorumListener::QuorumListener(std::vector<std::unique_ptr<Listener>> listeners, std::size_t locks, std::size_t least,
                               std::shared_ptr<Backoff> backoff)
    : m_listeners(std::move(listeners)),
      m_locks(locks),
      m_least(least),
      m_backoff(std::move(backoff)),
      m_epoll(::epoll_create1(EPOLL_CLOEXEC))
{
  for (const auto& listener : m_listeners) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    ::epoll_ctl(m_epoll.get(), EPOLL_CTL_ADD, listener->fd(), &event);
  }
}

Result<Done> QuorumListener::enough_left() const
{
  return m_listeners.size() < m_least
             ? Result<Done>(Error{ErrorCode::unreachable, "lost the subscriptions at too many servers"})
             : Result<Done>(Done{});
}

// Subscribes on one server after the other, and leaves out the servers that do not answer in time.
Result<Done> QuorumListener::hear_takings(std::size_t which, const CallLimits& limit)
{
  std::erase_if(m_listeners,
                [&](const std::unique_ptr<Listener>& listener) { return !listener->hear_takings(which, limit); });
  return enough_left();
}

// A server that closes its connection may have lost the lock as well, so the owner looks at once.
Result<Hints> QuorumListener::heard(const Clock& clock)
{
  Hints all(m_locks);
  const std::size_t before = m_listeners.size();
  std::erase_if(m_listeners, [&](const std::unique_ptr<Listener>& listener) {
    const auto hints = listener->heard(clock);
    for (std::size_t lock = 0; hints && lock < m_locks; ++lock) {
      const auto in = (*hints)[lock].look_in;
      all[lock].look_in = in ? std::min(all[lock].look_in.value_or(*in), *in) : all[lock].look_in;
    }
    return !hints;
  });
  if (const auto enough = enough_left(); !enough) {
    return enough.error();
  }
  for (Hint& hint : all) {
    if (m_listeners.size() < before) {
      hint.look_in = Millis{0};
    }
    if (hint.look_in) {
      *hint.look_in += m_backoff->draw();
    }
  }
  return all;
}

}  // namespace rlock
