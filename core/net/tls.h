// SPDX-License-Identifier: Apache-2.0
// TLS without a socket: what to send and what came, as bytes. So nothing here waits, nothing can
// raise SIGPIPE, and what has been decrypted never hides from who polls the socket. Private to wire.
#pragma once

#include "base/result.h"
#include "net/endpoint.h"
#include "net/openssl.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace rlock {

// Not thread-safe; may move between threads. After an Error it is useless.
class Tls {
 public:
  // Reads the files that the endpoint names, anew each time: what was renewed meanwhile counts.
  // ErrorCode::config when one of them is no good, or there is no OpenSSL.
  static Result<Tls> open(const Endpoint& endpoint);

  // Goes as far as it can; true when it is done. The server is then the one that was meant.
  //   unfit    its certificate is no good, or TLS is not what it speaks as we do
  //   refused  it does not accept our certificate, or wants one
  Result<bool> shake_hands();

  // Until the server's certificate expires, by this host's clock; known when the hands are shaken.
  [[nodiscard]] std::optional<std::chrono::days> certificate_left() const;

  Result<Done> seal(std::string_view plain);  // to_send has it then
  std::string to_send();                      // empty: nothing
  void take_in(std::string_view received);
  Result<std::string> unseal();  // empty: more has to come

 private:
  struct Free {
    const OpenSsl* library;
    void operator()(SSL* session) const { library->SSL_free(session); }
    void operator()(SSL_CTX* context) const { library->SSL_CTX_free(context); }
  };
  using Context = std::unique_ptr<SSL_CTX, Free>;

  Tls(const OpenSsl* library, const Endpoint& endpoint);
  Result<Done> trust(SSL_CTX* context, const TlsFiles& files) const;
  Result<Done> introduce(SSL_CTX* context, const TlsFiles& files) const;
  Result<Done> start(SSL_CTX* context);
  [[nodiscard]] Error failed() const;
  [[nodiscard]] Error bad_certificate(long why) const;
  [[nodiscard]] Error bad_file(std::string_view option, const std::string& file) const;
  [[nodiscard]] std::string reason() const;

  const OpenSsl* m_library;
  std::string m_host;
  std::string m_where;
  std::unique_ptr<SSL, Free> m_session;
  BIO* m_received = nullptr;  // both are the session's
  BIO* m_to_send = nullptr;
};

}  // namespace rlock
