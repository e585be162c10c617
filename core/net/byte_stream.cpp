// SPDX-License-Identifier: Apache-2.0
#include "net/byte_stream.h"

#include "net/dial.h"
#include "net/wait.h"

#include <array>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace rlock {
namespace {

constexpr std::size_t chunk = 16384;

// The first byte of a TLS record is its type. The first record is an alert or a part of the handshake.
bool is_tls_record(std::string_view bytes) { return bytes.front() == 0x15 || bytes.front() == 0x16; }

}  // namespace

ByteStream::ByteStream(Fd socket, const Endpoint& endpoint, const Clock& clock)
    : m_socket(std::move(socket)),
      m_clock(&clock),
      m_where(endpoint.shown()),
      m_may_want_tls(endpoint.kind == Endpoint::Kind::tcp && !endpoint.tls)
{
}

Result<ByteStream> ByteStream::open(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit)
{
  const Instant start = clock.now();
  std::optional<Tls> tls;
  if (endpoint.tls) {  // before connecting, because bad files make the connection useless
    auto opened = Tls::open(endpoint);
    if (!opened) {
      return opened.error();
    }
    tls = *std::move(opened);
  }
  auto socket = dial(endpoint, clock, limit);
  if (!socket) {
    return socket.error();
  }
  ByteStream stream(*std::move(socket), endpoint, clock);
  if (tls) {
    stream.m_tls = std::move(tls);
    if (const auto done = stream.tls_handshake(start, limit); !done) {
      return done.error();
    }
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

Result<Done> ByteStream::read_into(Decoder& decoder)
{
  std::array<char, chunk> bytes;  // NOLINT(*-member-init): recv fills it
  const auto count = receive(bytes.data(), bytes.size());
  if (!count) {
    return count.error();
  }
  const std::string_view received(bytes.data(), *count);
  m_has_received = m_has_received || !received.empty();
  if (m_tls) {
    m_tls->add_received(received);
    return decrypt_into(decoder);
  }
  decoder.feed(received);
  return Done{};
}

Result<Done> ByteStream::decrypt_into(Decoder& decoder)
{
  if (!m_tls) {
    return Done{};
  }
  const auto plain = m_tls->decrypt();
  if (!plain) {
    return plain.error();
  }
  decoder.feed(*plain);
  return Done{};
}

Error ByteStream::no_answer(Instant since, const CallLimits& limit) const
{
  return {ErrorCode::unreachable,
          "no answer from " + m_where + " within " + elapsed(*m_clock, since, limit) + raise_timeout};
}

Error ByteStream::broken(std::string_view why) const
{
  const bool may_want_tls = m_may_want_tls && !m_has_received;
  const std::string_view hint = may_want_tls ? " without an answer (if it speaks TLS: rediss://)" : "";
  return {.code = ErrorCode::unreachable,
          .text = "lost the connection to " + m_where + ": " + std::string(why) + std::string(hint),
          .was_there = m_has_received};
}

Error ByteStream::no_tls(std::string_view what) const
{
  return {ErrorCode::unreachable,
          "no TLS with " + m_where + ": it " + std::string(what) + " (if it speaks no TLS: redis://)"};
}

}  // namespace rlock
