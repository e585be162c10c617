// SPDX-License-Identifier: Apache-2.0
#include "server/subscription.h"

#include "net/errors.h"
#include "net/wait.h"
#include "server/slot.h"

#include <utility>

#include <poll.h>
#include <sys/epoll.h>

namespace rlock {

Result<Subscription> Subscription::open(const Endpoint& endpoint, std::span<const std::string_view> channels,
                                        const Clock& clock, const CallLimits& limit)
{
  auto connection = Connection::open(endpoint, clock, limit);
  if (!connection) {
    return connection.error();
  }
  Receiver receiver(*std::move(connection), ChannelKind::plain);
  const auto refused = receiver.listen(channels, limit);
  if (!refused) {
    return refused.error();
  }
  if (*refused) {
    return error_from_reply((*refused)->text, receiver.where());
  }
  std::vector<Receiver> one;
  one.push_back(std::move(receiver));
  return Subscription(std::move(one), {}, clock);
}

Subscription::Subscription(std::vector<Receiver> receivers, std::map<unsigned, std::size_t> by_slot, const Clock& clock)
    : m_receivers(std::move(receivers)), m_by_slot(std::move(by_slot)), m_clock(&clock)
{
  if (m_receivers.size() == 1) {
    return;
  }
  m_any = Fd(::epoll_create1(EPOLL_CLOEXEC));
  for (const Receiver& receiver : m_receivers) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    ::epoll_ctl(m_any.get(), EPOLL_CTL_ADD, receiver.fd(), &event);
  }
}

Result<Done> Subscription::add(std::string_view channel, const CallLimits& limit)
{
  const auto receiver = m_by_slot.empty() ? m_by_slot.end() : m_by_slot.find(slot_of(channel));
  return m_receivers[receiver == m_by_slot.end() ? 0 : receiver->second].listen_to_both_kinds(channel, limit);
}

void Subscription::set_master_watch(MasterWatch watch)
{
  m_any = Fd(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {}};
  const bool can = m_any && ::epoll_ctl(m_any.get(), EPOLL_CTL_ADD, m_receivers.front().fd(), &event) == 0 &&
                   ::epoll_ctl(m_any.get(), EPOLL_CTL_ADD, watch.fd(), &event) == 0;
  if (can) {
    m_watch = std::move(watch);
  } else {  // goes on without the watch, whose messages are only hints
    m_any.reset();
  }
}

// A watch whose connection has ended is dropped, because its descriptor would stay readable.
bool Subscription::has_moved()
{
  if (!m_watch) {
    return false;
  }
  const auto moved = m_watch->has_moved();
  if (!moved) {
    m_watch.reset();  // its descriptor leaves the epoll as it closes
  }
  return moved && *moved;
}

Result<std::optional<Message>> Subscription::next(const CallLimits& limit)
{
  if (has_moved()) {
    return Error{ErrorCode::unreachable, m_receivers.front().where() + " is no longer the master"};
  }
  if (m_receivers.size() == 1) {
    return m_receivers.front().next(limit);
  }
  for (bool over = false; !over;) {
    over = m_clock->now() >= limit.deadline;
    for (Receiver& receiver : m_receivers) {
      auto message = receiver.next({.deadline = m_clock->now(), .stop = limit.stop});
      if (!message || *message) {
        return message;
      }
    }
    if (!over && wait_for(m_any.get(), POLLIN, *m_clock, limit) == Waited::stopped) {
      return interrupted();
    }
  }
  return std::optional<Message>{};
}

}  // namespace rlock
