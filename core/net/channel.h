// SPDX-License-Identifier: Apache-2.0
// Bytes to a server and back, in TLS or not, within a Limit. Private to wire.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "base/stop.h"
#include "net/codec.h"
#include "net/endpoint.h"
#include "net/tls.h"

#include <optional>
#include <string>
#include <string_view>

namespace rlock {

// Not thread-safe; may move between threads. After an Error: drop it.
class Channel {
 public:
  // Connected and, where the endpoint wants TLS, sure of the server. The faults are those of
  // Connection::open. `clock` must outlive it.
  static Result<Channel> open(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit);

  // Done as well when the server has hung up: it may have said why, which reading finds out.
  Result<Done> send(std::string_view bytes, const CallLimits& limit);

  // Called when fd() is readable, and once after open, for what came along with the handshake:
  // feeds what there is, decrypted. It may be nothing.
  Result<Done> read_into(Decoder& decoder);
  Result<Done> early_into(Decoder& decoder);

  [[nodiscard]] int fd() const { return m_socket.get(); }
  [[nodiscard]] std::optional<std::chrono::days> certificate_left() const
  {
    return m_tls ? m_tls->certificate_left() : std::nullopt;
  }
  [[nodiscard]] const std::string& where() const { return m_where; }
  [[nodiscard]] const Clock& clock() const { return *m_clock; }
  [[nodiscard]] Error silent(Instant since, const CallLimits& limit) const;

 private:
  Channel(Fd socket, const Endpoint& endpoint, const Clock& clock);
  Result<Done> shake_hands(Instant start, const CallLimits& limit);
  Result<Done> transmit(std::string_view bytes, const CallLimits& limit);
  Result<std::size_t> receive(char* bytes, std::size_t size);
  [[nodiscard]] Error broken(std::string_view why) const;
  [[nodiscard]] Error no_tls(std::string_view what) const;

  Fd m_socket;
  const Clock* m_clock;
  std::string m_where;
  bool m_may_want_tls;        // plain TCP
  bool m_has_spoken = false;  // the server, beyond the handshake of TLS
  std::optional<Tls> m_tls;
};

}  // namespace rlock
