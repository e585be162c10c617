// SPDX-License-Identifier: Apache-2.0
#include "server/receiver.h"

#include "net/errors.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace rlock {
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

Result<Done> Receiver::listen_to_both_kinds(std::string_view channel, const CallLimits& limit)
{
  for (const ChannelKind kind : {ChannelKind::plain, m_kind}) {
    const auto refused = subscribe(kind, {&channel, 1}, limit);
    if (!refused) {
      return refused.error();
    }
    if (*refused) {
      return error_from_reply((*refused)->text, where());
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
  if (const auto sent = m_connection.send(argv, limit); !sent) {
    return sent.error();
  }
  for (std::size_t left = channels.size(); left > 0;) {
    auto reply = m_connection.answer(limit);
    if (!reply) {
      return reply.error();
    }
    if (reply->is_error()) {
      return std::optional(*std::move(reply));
    }
    if (is_array_of(*reply, sharded ? "ssubscribe" : "subscribe")) {
      --left;
    } else if (const auto handled = handle_push(*std::move(reply)); !handled || !*handled) {
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
    auto reply = m_connection.receive(limit);
    if (!reply) {
      return reply.error();
    }
    if (!reply->has_value()) {
      return std::optional<Message>{};
    }
    if (const auto handled = handle_push(**std::move(reply)); !handled) {
      return handled.error();
    }
  }
  Message message = std::move(m_early.front());
  m_early.pop_front();
  return std::optional(std::move(message));
}

}  // namespace rlock
