// SPDX-License-Identifier: Apache-2.0
#include "redis/subscription.h"

#include <poll.h>
#include <sys/epoll.h>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>
#include "net/byte_stream.h"
#include "redis/codec.h"
#include "redis/slot_map.h"

namespace rlock {

Result<Subscription> Subscription::open(const Endpoint& endpoint, std::span<const std::string_view> channels,
                                        const Clock& clock, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(auto connection, Connection::open(endpoint, clock, limit));
  Receiver receiver(std::move(connection), ChannelKind::plain);
  ASSIGN_OR_RETURN(const auto refused, receiver.listen(channels, limit));
  if (refused) {
    return error_from_reply(refused->text, receiver.where());
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

Result<Done> Subscription::add(std::span<const std::string_view> channels, const CallLimits& limit)
{
  if (m_by_slot.empty()) {
    return m_receivers.front().listen_to_both_kinds(channels, limit);
  }
  std::map<unsigned, std::vector<std::string_view>> of_slots;
  for (const std::string_view channel : channels) {
    of_slots[slot_of(channel)].push_back(channel);
  }
  for (const auto& [slot, names] : of_slots) {
    const auto receiver = m_by_slot.find(slot);
    Receiver& of_slot = m_receivers[receiver == m_by_slot.end() ? 0 : receiver->second];
    RETURN_IF_ERROR(of_slot.listen_to_both_kinds(names, limit));
  }
  return Done{};
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

namespace {

constexpr std::size_t most_early =
    10'000;  // messages before the answer to a request, which a flood would delay for ever

bool is_array_of(const Reply& reply, std::string_view name)
{
  return reply.kind == Reply::Kind::array && reply.elements.size() == 3 && reply.elements.front().text == name;
}

bool is_message(const Reply& reply) { return is_array_of(reply, "message") || is_array_of(reply, "smessage"); }

}  // namespace

Result<std::optional<Reply>> Receiver::listen(std::span<const std::string_view> channels, const CallLimits& limit)
{
  auto refused = subscribe(m_kind, channels, limit);
  const bool is_old = m_kind == ChannelKind::sharded && refused && *refused && is_unknown_command((*refused)->text);
  if (is_old) {
    m_kind = ChannelKind::plain;
    refused = subscribe(m_kind, channels, limit);
  }
  return refused;
}

Result<Done> Receiver::listen_to_both_kinds(std::span<const std::string_view> channels, const CallLimits& limit)
{
  for (const ChannelKind kind : {ChannelKind::plain, m_kind}) {
    ASSIGN_OR_RETURN(const auto refused, subscribe(kind, channels, limit));
    if (refused) {
      return error_from_reply(refused->text, where());
    }
    if (m_kind == ChannelKind::plain) {
      break;
    }
  }
  return Done{};
}

Result<std::optional<Reply>> Receiver::subscribe(ChannelKind kind, std::span<const std::string_view> channels,
                                                 const CallLimits& limit)
{
  const bool sharded = kind == ChannelKind::sharded;
  std::vector<std::string_view> argv{sharded ? "SSUBSCRIBE" : "SUBSCRIBE"};
  argv.insert(argv.end(), channels.begin(), channels.end());
  RETURN_IF_ERROR(m_connection.send(argv, limit));
  for (std::size_t left = channels.size(); left > 0;) {
    ASSIGN_OR_RETURN(auto reply, m_connection.answer(limit));
    if (reply.is_error()) {
      return std::optional(std::move(reply));
    }
    if (is_array_of(reply, sharded ? "ssubscribe" : "subscribe")) {
      --left;
    } else if (const auto handled = handle_push(std::move(reply)); !handled || !*handled) {
      return handled ? Error{ErrorCode::internal, where() + " did not confirm a subscription"} : handled.error();
    }
  }
  return std::optional<Reply>{};
}

// Handles a reply that no request has asked for: a message, or that the server no longer serves a channel. False:
// another reply.
Result<bool> Receiver::handle_push(Reply reply)
{
  if (reply.is_error()) {
    return error_from_reply(reply.text, where());
  }
  if (is_array_of(reply, "sunsubscribe")) {
    return Error{ErrorCode::unreachable, where() + " no longer has the slot of a channel that rlock listens to"};
  }
  if (is_message(reply)) {
    if (m_early.size() >= most_early) {
      return Error{ErrorCode::unreachable, where() + " sends messages without end instead of an answer"};
    }
    m_early.push_back({std::move(reply.elements[1].text), std::move(reply.elements[2].text)});
    return true;
  }
  return false;
}

Result<std::optional<Message>> Receiver::next(const CallLimits& limit)
{
  while (m_early.empty()) {
    ASSIGN_OR_RETURN(auto reply, m_connection.receive(limit));
    if (!reply.has_value()) {
      return std::optional<Message>{};
    }
    RETURN_IF_ERROR(handle_push(*std::move(reply)));
  }
  Message message = std::move(m_early.front());
  m_early.pop_front();
  return std::optional(std::move(message));
}

namespace {

constexpr std::string_view channel = "+switch-master";

}  // namespace

MasterWatch::MasterWatch(Connection sentinel, std::string prefix, std::string now,
                         std::shared_ptr<std::atomic<bool>> moved)
    : m_sentinel(std::move(sentinel)), m_prefix(std::move(prefix)), m_now(std::move(now)), m_moved(std::move(moved))
{
}

Result<MasterWatch> MasterWatch::open(Connection sentinel, const std::string& name, const HostPort& now,
                                      std::shared_ptr<std::atomic<bool>> moved, const CallLimits& limit)
{
  const std::array<std::string_view, 2> argv{"SUBSCRIBE", channel};
  ASSIGN_OR_RETURN(const auto confirmed, sentinel.call(argv, limit));
  if (confirmed.is_error()) {
    return error_from_reply(confirmed.text, sentinel.where());
  }
  return MasterWatch(std::move(sentinel), name + " ", " " + now.host + " " + std::to_string(now.port),
                     std::move(moved));
}

Result<bool> MasterWatch::has_moved()
{
  for (;;) {
    ASSIGN_OR_RETURN(const auto message, m_sentinel.receive({.deadline = Instant{}, .stop = StopToken::never()}));
    if (!message) {
      return m_moved->load();
    }
    if (announces_other_master(*message)) {
      m_moved->store(true);
    }
  }
}

// "NAME OLD-HOST OLD-PORT NEW-HOST NEW-PORT"
bool MasterWatch::announces_other_master(const Reply& message) const
{
  if (message.elements.size() != 3 || message.elements[1].text != channel) {
    return false;
  }
  const std::string& text = message.elements[2].text;
  return text.starts_with(m_prefix) && !text.ends_with(m_now);
}

}  // namespace rlock
