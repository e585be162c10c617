// SPDX-License-Identifier: Apache-2.0
#include "wire/connection.h"

#include "wire/codec.h"
#include "wire/dial.h"
#include "wire/handshake.h"
#include "wire/wait.h"

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace rlock {

struct Connection::State {
  Fd socket;
  const Clock& clock;
  std::string where;
  Decoder decoder;

  [[nodiscard]] Error silent(Instant since, const Limit& limit) const
  {
    return {Fault::unreachable, "no answer from " + where + " within " +
                                    elapsed(clock, since, limit) + " (raise --server-timeout)"};
  }
  [[nodiscard]] Error broken(std::string_view why) const
  {
    return {Fault::unreachable, "lost the connection to " + where + ": " + std::string(why)};
  }

  Result<Done> read_some();
};

// Called when the socket is readable.
Result<Done> Connection::State::read_some()
{
  std::array<char, 16384> bytes;  // NOLINT(*-member-init): recv fills it
  const ssize_t count = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
  if (count > 0) {
    decoder.feed({bytes.data(), static_cast<std::size_t>(count)});
    return Done{};
  }
  if (count == 0) {
    return broken("the server closed it");
  }
  if (errno == EAGAIN || errno == EINTR) {
    return Done{};
  }
  return broken(os_text(errno));
}

Connection::Connection(std::unique_ptr<State> state) : m_state(std::move(state)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

int Connection::fd() const { return m_state->socket.get(); }

const std::string& Connection::where() const { return m_state->where; }

Result<Connection> Connection::open(const Endpoint& endpoint, const Clock& clock,
                                    const Limit& limit)
{
  auto socket = dial(endpoint, clock, limit);
  if (!socket) {
    return socket.error();
  }
  Connection connection(
      std::unique_ptr<State>(new State{*std::move(socket), clock, endpoint.shown(), Decoder()}));
  if (const auto met = shake_hands(connection, endpoint, limit); !met) {
    return met.error();
  }
  return connection;
}

Result<Reply> Connection::call(std::span<const std::string_view> argv, const Limit& limit)
{
  if (const auto sent = send(argv, limit); !sent) {
    return sent.error();
  }
  return answer(limit);
}

Result<Done> Connection::send(std::span<const std::string_view> argv, const Limit& limit)
{
  if (limit.stop.requested()) {
    return interrupted();
  }
  const Instant start = m_state->clock.now();
  const std::string bytes = encode(argv);
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t count = ::send(fd(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno == EINTR) {
      continue;
    }
    if (errno == EPIPE || errno == ECONNRESET) {
      return Done{};  // the server may have said why before it hung up: receive finds out
    }
    if (errno != EAGAIN) {
      return m_state->broken(os_text(errno));
    }
    switch (wait_for(fd(), POLLOUT, m_state->clock, limit)) {
      case Waited::ready: break;
      case Waited::late: return m_state->silent(start, limit);
      case Waited::stopped: return interrupted();
    }
  }
  return Done{};
}

Result<Reply> Connection::answer(const Limit& limit)
{
  const Instant start = m_state->clock.now();
  auto reply = receive(limit);
  if (!reply) {
    return reply.error();
  }
  if (!reply->has_value()) {
    return m_state->silent(start, limit);
  }
  return **std::move(reply);
}

Result<std::optional<Reply>> Connection::receive(const Limit& limit)
{
  // A server that never stops sending must not hold us past the deadline: then one more look, no
  // more.
  for (bool over = false;;) {
    auto reply = m_state->decoder.next();
    if (!reply) {
      return Error{reply.error().fault, m_state->where + " " + reply.error().text};
    }
    if (over || reply->has_value()) {
      return reply;
    }
    over = m_state->clock.now() >= limit.deadline;
    switch (over ? Waited::ready : wait_for(fd(), POLLIN, m_state->clock, limit)) {
      case Waited::late: return std::optional<Reply>{};
      case Waited::stopped: return interrupted();
      case Waited::ready: break;
    }
    if (const auto read = m_state->read_some(); !read) {
      return read.error();
    }
  }
}

}  // namespace rlock
