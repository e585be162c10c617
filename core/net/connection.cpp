// SPDX-License-Identifier: Apache-2.0
#include "net/connection.h"

#include "net/byte_stream.h"
#include "net/codec.h"
#include "net/handshake.h"
#include "net/wait.h"

#include <string>
#include <utility>

#include <poll.h>

namespace rlock {

struct Connection::State {
  ByteStream stream;
  Decoder decoder;
};

Connection::Connection(std::unique_ptr<State> state) : m_state(std::move(state)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

int Connection::fd() const { return m_state->stream.fd(); }

std::optional<std::chrono::days> Connection::certificate_left() const { return m_state->stream.certificate_left(); }

const std::string& Connection::where() const { return m_state->stream.where(); }

Result<Connection> Connection::open(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit)
{
  auto stream = ByteStream::open(endpoint, clock, limit);
  if (!stream) {
    return stream.error();
  }
  Connection connection(std::unique_ptr<State>(new State{*std::move(stream), Decoder()}));
  State& state = *connection.m_state;
  if (const auto early = state.stream.decrypt_into(state.decoder); !early) {
    return early.error();
  }
  if (const auto done = shake_hands(connection, endpoint, limit); !done) {
    return done.error();
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
  return m_state->stream.send(encode(argv), limit);
}

Result<Reply> Connection::answer(const CallLimits& limit)
{
  const Instant start = m_state->stream.clock().now();
  auto reply = receive(limit);
  if (!reply) {
    return reply.error();
  }
  if (!reply->has_value()) {
    return m_state->stream.no_answer(start, limit);
  }
  return **std::move(reply);
}

Result<std::optional<Reply>> Connection::receive(const CallLimits& limit)
{
  // A server that never stops sending must not delay the caller: after the deadline there is one more look.
  for (bool over = false;;) {
    auto reply = m_state->decoder.next();
    if (!reply) {
      return Error{reply.error().code, where() + " " + reply.error().text};
    }
    if (over || reply->has_value()) {
      return reply;
    }
    over = m_state->stream.clock().now() >= limit.deadline;
    switch (over ? Waited::ready : wait_for(fd(), POLLIN, m_state->stream.clock(), limit)) {
      case Waited::late: return std::optional<Reply>{};
      case Waited::stopped: return interrupted();
      case Waited::ready: break;
    }
    if (const auto read = m_state->stream.read_into(m_state->decoder); !read) {
      return read.error();
    }
  }
}

}  // namespace rlock
