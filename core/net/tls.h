// SPDX-License-Identifier: Apache-2.0
// TLS without a socket: the caller sends and receives the bytes. So no function here waits or raises SIGPIPE, and no decrypted
// bytes stay in a buffer while the caller polls the socket. Private to net.
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

// Not thread-safe; may move between threads. Useless after an Error.
class Tls {
 public:
  // Reads the files that the endpoint names, each time, because they may have been renewed. ErrorCode::config: a file is invalid,
  // or there is no OpenSSL.
  //   protocol  what client and server are to speak inside TLS (ALPN, RFC 7301); empty: that is not agreed on
  static Result<Tls> open(const Endpoint& endpoint, std::string_view protocol);

  // Continues the handshake with the bytes received so far. True: the handshake is complete, and the server is authenticated.
  //   server_not_ready  the server's certificate is invalid, or the server and rlock have no TLS version or cipher in common
  //   refused  the server does not accept the client certificate, or requires one
  Result<bool> handshake();

  // The time until the server's certificate expires, by this host's clock; nullopt before the handshake.
  [[nodiscard]] std::optional<std::chrono::days> certificate_left() const;

  Result<Done> encrypt(std::string_view plain);  // to_send() returns the encrypted bytes
  std::string to_send();                         // the bytes to send; empty: none
  void add_received(std::string_view bytes);
  Result<std::string> decrypt();  // the text of the received bytes; empty: more bytes are needed

 private:
  struct Free {
    const OpenSsl* library;
    void operator()(SSL* session) const { library->SSL_free(session); }
    void operator()(SSL_CTX* context) const { library->SSL_CTX_free(context); }
  };
  using Context = std::unique_ptr<SSL_CTX, Free>;

  Tls(const OpenSsl* library, const Endpoint& endpoint, std::string_view protocol);
  Result<Done> trust(SSL_CTX* context, const TlsFiles& files) const;
  Result<Done> use_client_certificate(SSL_CTX* context, const TlsFiles& files) const;
  Result<Done> start(SSL_CTX* context);
  [[nodiscard]] bool offer_protocol();
  [[nodiscard]] Error failed() const;
  [[nodiscard]] Error bad_certificate(long why) const;
  [[nodiscard]] Error bad_file(std::string_view option, const std::string& file) const;
  [[nodiscard]] std::string reason() const;

  const OpenSsl* m_library;
  std::string m_host;
  std::string m_protocol;
  bool m_has_certificate;  // of the client
  std::string m_where;
  std::unique_ptr<SSL, Free> m_session;
  BIO* m_received = nullptr;  // m_session owns both
  BIO* m_to_send = nullptr;
};

}  // namespace rlock
