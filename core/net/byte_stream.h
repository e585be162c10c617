// SPDX-License-Identifier: Apache-2.0
// A connected stream of bytes to a server, with or without TLS. Private to net.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include "base/defaults.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/wait.h"
#include "net/codec.h"
#include "net/endpoint.h"
#include "net/tls.h"

namespace rlock {

// Not thread-safe; may move between threads. Drop the stream after an Error.
class ByteStream {
 public:
  // Connects and, if the endpoint wants TLS, authenticates the server. `clock` must outlive the stream. Errors: those of
  // Connection::open.
  static Result<ByteStream> open(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit);

  // Sends the bytes. Returns Done as well if the server has closed the connection, because the next read may return the reason.
  Result<Done> send(std::string_view bytes, const CallLimits& limit);

  // Both feed the decoder with the bytes that have arrived, if any. Call read_into when fd() is readable. Call decrypt_into once
  // after open, because bytes may have come together with the end of the TLS handshake.
  Result<Done> read_into(Decoder& decoder);
  Result<Done> decrypt_into(Decoder& decoder);

  [[nodiscard]] int fd() const { return m_socket.get(); }
  [[nodiscard]] std::optional<std::chrono::days> certificate_left() const
  {
    return m_tls ? m_tls->certificate_left() : std::nullopt;
  }
  [[nodiscard]] const std::string& where() const { return m_where; }
  [[nodiscard]] const Clock& clock() const { return *m_clock; }
  [[nodiscard]] Error no_answer(Instant since, const CallLimits& limit) const;

 private:
  ByteStream(Fd socket, const Endpoint& endpoint, const Clock& clock);
  Result<Done> tls_handshake(Instant start, const CallLimits& limit);
  Result<Done> transmit(std::string_view bytes, const CallLimits& limit);
  Result<std::size_t> receive(char* bytes, std::size_t size);
  [[nodiscard]] Error broken(std::string_view why) const;
  [[nodiscard]] Error no_tls(std::string_view what) const;

  Fd m_socket;
  const Clock* m_clock;
  std::string m_where;
  bool m_may_want_tls;          // plain TCP: the server may expect TLS
  bool m_has_received = false;  // bytes have come after the TLS handshake
  std::optional<Tls> m_tls;
};

Error connection_lost(const std::string& where);  // the error of Transport::follow_up

}  // namespace rlock
