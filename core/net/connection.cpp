// SPDX-License-Identifier: Apache-2.0
#include "net/connection.h"

#include "net/channel.h"
#include "net/codec.h"
#include "net/handshake.h"
#include "net/wait.h"

#include <string>
#include <utility>

#include <poll.h>

namespace rlock {

struct Connection::State {
  Channel channel;
  Decoder decoder;
};

Connection::Connection(std::unique_ptr<State> state) : m_state(std::move(state)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

int Connection::fd() const { return m_state->channel.fd(); }

std::optional<std::chrono::days> Connection::certificate_left() const { return m_state->channel.certificate_left(); }

const std::string& Connection::where() const { return m_state->channel.where(); }

Result<Connection> Connection::open(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit)
{
  auto channel = Channel::open(endpoint, clock, limit);
  if (!channel) {
    return channel.error();
  }
  Connection connection(std::unique_ptr<State>(new State{*std::move(channel), Decoder()}));
  State& state = *connection.m_state;
  if (const auto early = state.channel.early_into(state.decoder); !early) {
    return early.error();
  }
  if (const auto met = shake_hands(connection, endpoint, limit); !met) {
    return met.error();
  }
  return connection;
}

Result<Reply> Connection::call(std::span<const std::string_view> argv, const CallLimits& limit)
{
  if (const auto sent = send(argv, limit); !sent) {
    return sent.error();
  }
  return answer(limit);
}

Result<Done> Connection::send(std::span<const std::string_view> argv, const CallLimits& limit)
{
  if (limit.stop.requested()) {
    return interrupted();
  }
  return m_state->channel.send(encode(argv), limit);
}

Result<Reply> Connection::answer(const CallLimits& limit)
{
  const Instant start = m_state->channel.clock().now();
  auto reply = receive(limit);
  if (!reply) {
    return reply.error();
  }
  if (!reply->has_value()) {
    return m_state->channel.silent(start, limit);
  }
  return **std::move(reply);
}

Result<std::optional<Reply>> Connection::receive(const CallLimits& limit)
{
  // A server that never stops sending must not hold us past the deadline: then one more look, no
  // more.
  for (bool over = false;;) {
    auto reply = m_state->decoder.next();
    if (!reply) {
      return Error{reply.error().fault, where() + " " + reply.error().text};
    }
    if (over || reply->has_value()) {
      return reply;
    }
    over = m_state->channel.clock().now() >= limit.deadline;
    switch (over ? Waited::ready : wait_for(fd(), POLLIN, m_state->channel.clock(), limit)) {
      case Waited::late: return std::optional<Reply>{};
      case Waited::stopped: return interrupted();
      case Waited::ready: break;
    }
    if (const auto read = m_state->channel.read_into(m_state->decoder); !read) {
      return read.error();
    }
  }
}

}  // namespace rlock
