// SPDX-License-Identifier: Apache-2.0
#include "wire/subscription.h"

#include "wire/errors.h"

#include <array>
#include <utility>
#include <vector>

namespace rlock {
namespace {

bool is_array_of(const Reply& reply, std::string_view name)
{
  return reply.kind == Reply::Kind::array && reply.elements.size() == 3 &&
         reply.elements.front().text == name;
}

Message message_of(Reply& reply)
{
  return {std::move(reply.elements[1].text), std::move(reply.elements[2].text)};
}

}  // namespace

Result<Subscription> Subscription::open(const Endpoint& endpoint,
                                        std::span<const std::string_view> channels,
                                        const Clock& clock, const Limit& limit)
{
  auto connection = Connection::open(endpoint, clock, limit);
  if (!connection) {
    return connection.error();
  }
  std::vector<std::string_view> argv{"SUBSCRIBE"};
  argv.insert(argv.end(), channels.begin(), channels.end());
  if (const auto sent = connection->send(argv, limit); !sent) {
    return sent.error();
  }
  Subscription subscription(*std::move(connection));
  const auto confirmed = subscription.confirm(channels.size(), limit);
  if (!confirmed) {
    return confirmed.error();
  }
  return subscription;
}

Result<Done> Subscription::add(std::string_view channel, const Limit& limit)
{
  const std::array<std::string_view, 2> argv{"SUBSCRIBE", channel};
  const auto sent = m_connection.send(argv, limit);
  return sent ? confirm(1, limit) : sent;
}

Result<Done> Subscription::confirm(std::size_t channels, const Limit& limit)
{
  while (channels > 0) {
    auto reply = m_connection.answer(limit);
    if (!reply) {
      return reply.error();
    }
    if (reply->is_error()) {
      return error_from_reply(reply->text, m_connection.where());
    }
    if (is_array_of(*reply, "subscribe")) {
      --channels;
    } else if (is_array_of(*reply, "message")) {
      m_early.push_back(message_of(*reply));
    } else {
      return Error{Fault::internal, m_connection.where() + " did not confirm a subscription"};
    }
  }
  return Done{};
}

Result<std::optional<Message>> Subscription::next(const Limit& limit)
{
  if (!m_early.empty()) {
    Message message = std::move(m_early.front());
    m_early.pop_front();
    return std::optional(std::move(message));
  }
  for (;;) {
    auto reply = m_connection.receive(limit);
    if (!reply) {
      return reply.error();
    }
    if (!reply->has_value()) {
      return std::optional<Message>{};
    }
    Reply& said = **reply;
    if (said.is_error()) {
      return error_from_reply(said.text, m_connection.where());
    }
    if (is_array_of(said, "message")) {
      return std::optional(message_of(said));
    }
  }
}

}  // namespace rlock
