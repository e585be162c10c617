// SPDX-License-Identifier: Apache-2.0
#include "net/byte_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>
#include "base/duration.h"
#include "base/result.h"
#include "net/dial.h"
#include "net/endpoint.h"
#include "net/resolve.h"

namespace rlock {
namespace {

// The first byte of a TLS record is its type. The first record is an alert or a part of the handshake.
bool is_tls_record(std::string_view bytes) { return bytes.front() == 0x15 || bytes.front() == 0x16; }

}  // namespace

ByteStream::ByteStream(Fd socket, const Endpoint& endpoint, const Clock& clock)
    : m_socket(std::move(socket)),
      m_clock(&clock),
      m_where(endpoint.shown()),
      m_scheme(endpoint.scheme),
      m_tls_scheme(endpoint.scheme_with_tls()),
      m_may_want_tls(endpoint.kind == Endpoint::Kind::tcp && !endpoint.tls)
{
}

Result<ByteStream> ByteStream::open(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit,
                                    std::string_view protocol)
{
  const Instant start = clock.now();
  std::optional<Tls> tls;
  if (endpoint.tls) {  // before connecting, because bad files make the connection useless
    ASSIGN_OR_RETURN(auto opened, Tls::open(endpoint, protocol));
    tls = std::move(opened);
  }
  ASSIGN_OR_RETURN(auto socket, dial(endpoint, clock, limit));
  ByteStream stream(std::move(socket), endpoint, clock);
  if (tls) {
    stream.m_tls = std::move(tls);
    RETURN_IF_ERROR(stream.tls_handshake(start, limit));
  }
  return stream;
}

Result<Done> ByteStream::tls_handshake(Instant start, const CallLimits& limit)
{
  std::array<char, chunk> bytes;  // NOLINT(*-member-init): recv fills it
  for (bool first = true, over = false;;) {
    const auto done = m_tls->handshake();
    const auto sent = transmit(m_tls->to_send(), limit);  // after a failure too, because it is the alert for the server
    if (!done || !sent) {
      return done ? sent.error() : done.error();
    }
    if (*done) {
      return Done{};
    }
    switch (over ? Waited::late : wait_for(fd(), POLLIN, *m_clock, limit)) {
      case Waited::late: return no_tls("did not complete the handshake within " + elapsed(*m_clock, start, limit));
      case Waited::stopped: return interrupted();
      case Waited::ready: break;
    }
    over = m_clock->now() >= limit.deadline;  // a server that never stops sending must not delay the caller
    const auto count = receive(bytes.data(), bytes.size());
    if (!count) {
      return no_tls("ended the connection");
    }
    const std::string_view received(bytes.data(), *count);
    if (first && !received.empty() && !is_tls_record(received)) {
      return no_tls("answered without TLS");
    }
    first = first && received.empty();
    m_tls->add_received(received);
  }
}

Result<Done> ByteStream::send(std::string_view bytes, const CallLimits& limit)
{
  if (!m_tls) {
    return transmit(bytes, limit);
  }
  const auto encrypted = m_tls->encrypt(bytes);
  return encrypted ? transmit(m_tls->to_send(), limit) : encrypted;
}

Result<Done> ByteStream::transmit(std::string_view bytes, const CallLimits& limit)
{
  const Instant start = m_clock->now();
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno == EINTR) {
      continue;
    }
    if (errno == EPIPE || errno == ECONNRESET) {
      return Done{};
    }
    if (errno != EAGAIN) {
      return broken(os_text(errno));
    }
    switch (wait_for(fd(), POLLOUT, *m_clock, limit)) {
      case Waited::ready: break;
      case Waited::late: return no_answer(start, limit);
      case Waited::stopped: return interrupted();
    }
  }
  return Done{};
}

// 0: no bytes had arrived.
Result<std::size_t> ByteStream::receive(char* bytes, std::size_t size)
{
  const ssize_t count = ::recv(fd(), bytes, size, 0);
  if (count > 0) {
    return static_cast<std::size_t>(count);
  }
  if (count == 0) {
    return broken("the server closed it");
  }
  if (errno == EAGAIN || errno == EINTR) {
    return std::size_t{0};
  }
  return broken(os_text(errno));
}

Error ByteStream::no_answer(Instant since, const CallLimits& limit) const
{
  return no_answer_in_time("no answer from " + m_where + " within " + elapsed(*m_clock, since, limit));
}

Error ByteStream::broken(std::string_view why) const
{
  const bool may_want_tls = m_may_want_tls && !m_has_received;
  const std::string hint = may_want_tls ? " (if it speaks TLS: " + m_tls_scheme + "://)" : "";
  Error lost = unreachable(
      "lost the connection to " + m_where + ": " + std::string(why) + (may_want_tls ? " without an answer" : ""), hint);
  lost.was_there = m_has_received;
  return lost;
}

Error ByteStream::no_tls(std::string_view what) const
{
  return unreachable("no TLS with " + m_where + ": it " + std::string(what),
                     " (if it speaks no TLS: " + m_scheme + "://)");
}

namespace {

// How an attempt to connect ended, as an errno: 0: connected, ETIMEDOUT: by the deadline, ECANCELED: by the stop.
struct Attempt {
  Fd socket;
  int error = 0;
};

// A keepalive notices that the server's host is gone while no request is under way.
void tune_tcp(int fd)
{
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  // A host that is gone is noticed after idle + count * interval seconds.
  const int idle = 10;
  const int interval = 5;
  const int count = 3;
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

int outcome_of_connect(int fd)
{
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

// Retries connect(2): while the backlog of a unix socket is full, connect(2) fails with EAGAIN, and poll(2) cannot wait for room.
int connect_when_there_is_room(int fd, const Address& address, const Clock& clock, const CallLimits& limit)
{
  constexpr Millis pause{5};
  for (;;) {
    if (::connect(fd, address.get(), address.length) == 0) {
      return 0;
    }
    if (errno != EAGAIN) {
      return errno;
    }
    const Instant now = clock.now();
    if (now >= limit.deadline) {
      return ETIMEDOUT;
    }
    if (clock.sleep_until(std::min(now + pause, limit.deadline), limit.stop) == Wake::stopped) {
      return ECANCELED;
    }
  }
}

Attempt connect_to(const Address& address, const Clock& clock, const CallLimits& limit)
{
  Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) {
    return {Fd(), errno};
  }
  if (address.family() != AF_UNIX) {
    tune_tcp(socket.get());
  }
  int error = connect_when_there_is_room(socket.get(), address, clock, limit);
  if (error == EINPROGRESS || error == EINTR) {  // interrupted or not, connect(2) goes on by itself
    switch (wait_for(socket.get(), POLLOUT, clock, limit)) {
      case Waited::ready: error = outcome_of_connect(socket.get()); break;
      case Waited::late: error = ETIMEDOUT; break;
      case Waited::stopped: error = ECANCELED; break;
    }
  }
  return {std::move(socket), error};
}

Attempt connect_to_any(const std::vector<Address>& addresses, const Clock& clock, const CallLimits& limit)
{
  Attempt attempt;
  std::size_t untried = addresses.size();
  for (const Address& address : addresses) {
    attempt = connect_to(address, clock, share_of(limit, clock.now(), untried--));
    if (attempt.error == 0 || attempt.error == ECANCELED) {
      return attempt;
    }
  }
  return attempt;
}

// The advice about an address that a server has told; empty: the user named it.
std::string_view advice_for_announced(const Endpoint& endpoint)
{
  switch (endpoint.named_by) {
    case Endpoint::NamedBy::sentinels:
      return " (the sentinels announced this address: does the server run there, and does this host reach it? see "
             "replica-announce-ip and sentinel announce-ip)";
    case Endpoint::NamedBy::cluster:
      return " (the cluster announced this address: does the node run there, and does this host reach it? see "
             "cluster-announce-ip)";
    case Endpoint::NamedBy::user: break;
  }
  return {};
}

Error cannot_reach(const Endpoint& endpoint, int error, const std::string& after)
{
  const std::string text = "cannot reach " + endpoint.shown() + ": ";
  if (is_shortage(error)) {
    return {ErrorCode::os, text + os_text(error)};
  }
  const auto with = [&](const std::string& why, std::string_view advice) {
    const std::string_view announced = advice_for_announced(endpoint);
    Error unreached = unreachable(text + why, announced.empty() ? advice : announced);
    unreached.late = error == ETIMEDOUT;
    unreached.nobody_there = announced.empty() && error != ETIMEDOUT && error != EACCES;
    return unreached;
  };
  switch (error) {
    case ECANCELED: return interrupted();
    case ETIMEDOUT: return with("no answer within " + after, raise_timeout);
    case ENOENT:
    case ECONNREFUSED:
      return with(
          error == ENOENT ? "no such socket" : "connection refused",
          endpoint.scheme == Endpoint().scheme ? " (is redis-server running? -S names another server)" : is_it_running);
    case EACCES: return with("permission denied", " (its unixsocketperm must let you in)");
    default: return with(os_text(error), " (-S names another server)");
  }
}

Result<std::vector<Address>> addresses_of(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit)
{
  if (endpoint.kind == Endpoint::Kind::tcp) {
    return resolve(endpoint.host, endpoint.port, clock, limit);
  }
  if (endpoint.kind != Endpoint::Kind::unix_socket) {
    return Error{ErrorCode::internal, "this endpoint only leads to a server"};
  }
  if (!fits_socket_address(endpoint.path)) {
    return Error{ErrorCode::config, socket_path_too_long()};
  }
  const sockaddr_un unix_address = socket_address(endpoint.path);
  Address address{.length = sizeof unix_address};
  std::memcpy(&address.bytes, &unix_address, sizeof unix_address);
  return std::vector{address};
}

}  // namespace

Result<Fd> dial(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit)
{
  const Instant start = clock.now();
  const auto addresses = addresses_of(endpoint, clock, limit);
  if (!addresses) {
    Error why = addresses.error();
    if (why.code != ErrorCode::interrupted) {
      const std::string_view advice = advice_for_announced(endpoint);
      why.text.insert(0, "cannot reach " + endpoint.shown() + ": ").append(advice);
      why.advice += advice.size();
    }
    return why;
  }
  Attempt attempt = connect_to_any(*addresses, clock, limit);
  if (attempt.error != 0) {
    return cannot_reach(endpoint, attempt.error, elapsed(clock, start, limit));
  }
  return std::move(attempt.socket);
}

Result<Fd> connect_socket(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit)
{
  const Instant start = clock.now();
  ASSIGN_OR_RETURN(const auto addresses, addresses_of(endpoint, clock, limit));
  Attempt attempt = connect_to_any(addresses, clock, limit);
  switch (attempt.error) {
    case 0: return std::move(attempt.socket);
    case ECANCELED: return interrupted();
    case ETIMEDOUT: return no_answer_in_time("no answer within " + elapsed(clock, start, limit));
    case ENOENT:
    case ECONNREFUSED: return unreachable(os_text(attempt.error), is_it_running);
    default: return Error{is_shortage(attempt.error) ? ErrorCode::os : ErrorCode::unreachable, os_text(attempt.error)};
  }
}

Error connection_lost(const std::string& where)
{
  return {ErrorCode::unreachable, "lost the connection to " + where + " between two requests that belong together"};
}

}  // namespace rlock
