// SPDX-License-Identifier: Apache-2.0
// A connected stream of bytes to a server, with or without TLS. For net, and for a store that frames its own
// requests.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include "base/defaults.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/wait.h"
#include "net/endpoint.h"
#include "net/tls.h"

namespace rlock {

// Not thread-safe; may move between threads. Drop the stream after an Error.
class ByteStream {
 public:
  // Connects and, if the endpoint wants TLS, authenticates the server. `clock` must outlive the stream.
  // Errors: those of dial (net/dial.h), and with TLS also
  //   server_not_ready  an invalid certificate of the server, a handshake that failed
  //   refused      a missing client certificate, or one that the server does not accept
  //   config       an invalid file for TLS
  // `protocol`: Tls::open; of no account without TLS.
  static Result<ByteStream> open(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit,
                                 std::string_view protocol = {});

  // Sends the bytes. Returns Done as well if the server has closed the connection, because the next read may return the reason.
  Result<Done> send(std::string_view bytes, const CallLimits& limit);

  // Both call `feed` with the bytes that have arrived, if any. Call read_into when fd() is readable. Call decrypt_into once after
  // open, because bytes may have come together with the end of the TLS handshake.
  template <typename Feed>
  Result<Done> read_into(const Feed& feed)
  {
    std::array<char, chunk> bytes;  // NOLINT(*-member-init): recv fills it
    ASSIGN_OR_RETURN(const auto count, receive(bytes.data(), bytes.size()));
    const std::string_view received(bytes.data(), count);
    m_has_received = m_has_received || !received.empty();
    if (m_tls) {
      m_tls->add_received(received);
      return decrypt_into(feed);
    }
    feed(received);
    return Done{};
  }
  template <typename Feed>
  Result<Done> decrypt_into(const Feed& feed)
  {
    if (!m_tls) {
      return Done{};
    }
    ASSIGN_OR_RETURN(const auto plain, m_tls->decrypt());
    feed(plain);
    return Done{};
  }

  [[nodiscard]] int fd() const { return m_socket.get(); }
  [[nodiscard]] std::optional<std::chrono::days> certificate_left() const
  {
    return m_tls ? m_tls->certificate_left() : std::nullopt;
  }
  [[nodiscard]] const std::string& where() const { return m_where; }
  [[nodiscard]] const Clock& clock() const { return *m_clock; }
  [[nodiscard]] Error no_answer(Instant since, const CallLimits& limit) const;

 private:
  static constexpr std::size_t chunk = 16384;

  ByteStream(Fd socket, const Endpoint& endpoint, const Clock& clock);
  Result<Done> tls_handshake(Instant start, const CallLimits& limit);
  Result<Done> transmit(std::string_view bytes, const CallLimits& limit);
  Result<std::size_t> receive(char* bytes, std::size_t size);
  [[nodiscard]] Error broken(std::string_view why) const;
  [[nodiscard]] Error no_tls(std::string_view what) const;

  Fd m_socket;
  const Clock* m_clock;
  std::string m_where;
  std::string m_scheme;         // of a URL without TLS
  std::string m_tls_scheme;     // of a URL with TLS
  bool m_may_want_tls;          // plain TCP: the server may expect TLS
  bool m_has_received = false;  // bytes have come after the TLS handshake
  std::optional<Tls> m_tls;
};

Error connection_lost(const std::string& where);  // the error of Transport::follow_up

}  // namespace rlock
