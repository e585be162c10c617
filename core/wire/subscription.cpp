// SPDX-License-Identifier: Apache-2.0
#include "wire/subscription.h"

#include "wire/errors.h"

#include <utility>
#include <vector>

namespace rlock {
namespace {

bool is_array_of(const Reply& reply, std::string_view name)
{
  return reply.kind == Reply::Kind::array && reply.elements.size() == 3 &&
         reply.elements.front().text == name;
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
  for (std::size_t confirmed = 0; confirmed < channels.size(); ++confirmed) {
    const auto reply = connection->answer(limit);
    if (!reply) {
      return reply.error();
    }
    if (reply->is_error()) {
      return error_from_reply(reply->text, connection->where());
    }
    if (!is_array_of(*reply, "subscribe")) {
      return Error{Fault::internal, connection->where() + " did not confirm a subscription"};
    }
  }
  return Subscription(*std::move(connection));
}

Result<std::optional<Message>> Subscription::next(const Limit& limit)
{
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
      return std::optional(
          Message{std::move(said.elements[1].text), std::move(said.elements[2].text)});
    }
  }
}

}  // namespace rlock
