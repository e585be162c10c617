// SPDX-License-Identifier: Apache-2.0
#include "net/tls.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>

#include <arpa/inet.h>
#include <unistd.h>

namespace rlock {
namespace {

// Otherwise OpenSSL would ask for the passphrase on the terminal of the job.
int no_passphrase(char*, int, int, void*) { return -1; }

bool is_address(const std::string& host)
{
  std::array<unsigned char, sizeof(in6_addr)> parsed{};
  return ::inet_pton(AF_INET, host.c_str(), parsed.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), parsed.data()) == 1;
}

int size_of(std::string_view bytes)
{
  constexpr std::size_t most = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(bytes.size(), most));
}

// The reason codes of OpenSSL for an alert of the server are 1000 plus the number of the alert (RFC 8446, 6).
constexpr int alert_reason = 1000;
constexpr int handshake_failure = alert_reason + 40;
constexpr int bad_certificate_alert = alert_reason + 42;
constexpr int access_denied = alert_reason + 49;
constexpr int certificate_required = alert_reason + 116;

}  // namespace

Tls::Tls(const OpenSsl* library, const Endpoint& endpoint, std::string_view protocol)
    : m_library(library),
      m_host(endpoint.host.substr(0, endpoint.host.find('%'))),  // without the zone of fe80::1%eth0
      m_protocol(protocol),
      m_has_certificate(endpoint.tls && !endpoint.tls->certificate.empty()),
      m_where(endpoint.shown()),
      m_session(nullptr, Free{library})
{
}

Result<Tls> Tls::open(const Endpoint& endpoint, std::string_view protocol)
{
  ASSIGN_OR_RETURN(const auto library, openssl());
  Tls tls(library, endpoint, protocol);
  const TlsFiles files = endpoint.tls.value_or(TlsFiles{});
  const Context context(library->SSL_CTX_new(library->TLS_client_method()), Free{library});
  if (!context) {
    return tls.failed();
  }
  library->SSL_CTX_ctrl(context.get(), SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr);
  library->SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  library->SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  for (const auto& done : {tls.trust(context.get(), files), tls.use_client_certificate(context.get(), files)}) {
    if (!done) {
      return done.error();
    }
  }
  RETURN_IF_ERROR(tls.start(context.get()));
  return tls;
}

Result<Done> Tls::trust(SSL_CTX* context, const TlsFiles& files) const
{
  m_library->ERR_clear_error();
  if (files.authorities.empty()) {
    m_library->SSL_CTX_set_default_verify_paths(context);  // if there are none, no certificate is valid
    return Done{};
  }
  return m_library->SSL_CTX_load_verify_file(context, files.authorities.c_str()) == 1
             ? Result<Done>(Done{})
             : bad_file("--cacert", files.authorities);
}

Result<Done> Tls::use_client_certificate(SSL_CTX* context, const TlsFiles& files) const
{
  if (files.certificate.empty()) {
    return Done{};
  }
  m_library->ERR_clear_error();
  m_library->SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  if (m_library->SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return bad_file("--cert", files.certificate);
  }
  const std::string& key = files.key.empty() ? files.certificate : files.key;
  if (m_library->SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return bad_file("--tls-key", key);
  }
  return Done{};
}

bool Tls::offer_protocol()
{
  if (m_protocol.empty()) {
    return true;
  }
  const std::string list = static_cast<char>(m_protocol.size()) + m_protocol;
  return m_library->SSL_set_alpn_protos(m_session.get(), reinterpret_cast<const unsigned char*>(list.data()),
                                        static_cast<unsigned>(list.size())) == 0;
}

// Authenticates the server: its certificate must have a trusted chain and the name that the user gave.
Result<Done> Tls::start(SSL_CTX* context)
{
  m_session.reset(m_library->SSL_new(context));
  m_received = m_library->BIO_new(m_library->BIO_s_mem());
  m_to_send = m_library->BIO_new(m_library->BIO_s_mem());
  if (!m_session || m_received == nullptr || m_to_send == nullptr) {
    return failed();
  }
  SSL* const session = m_session.get();
  m_library->SSL_set_bio(session, m_received, m_to_send);
  m_library->SSL_set_connect_state(session);
  if (!offer_protocol()) {
    return failed();
  }
  if (is_address(m_host)) {
    const auto set = m_library->X509_VERIFY_PARAM_set1_ip_asc(m_library->SSL_get0_param(session), m_host.c_str());
    return set == 1 ? Result<Done>(Done{}) : failed();
  }
  m_library->SSL_set_hostflags(session, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const bool named =
      m_library->SSL_set1_host(session, m_host.c_str()) == 1 &&
      m_library->SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, m_host.data()) == 1;
  return named ? Result<Done>(Done{}) : failed();
}

Result<bool> Tls::handshake()
{
  m_library->ERR_clear_error();
  const int done = m_library->SSL_do_handshake(m_session.get());
  if (done == 1) {
    return true;
  }
  if (m_library->SSL_get_error(m_session.get(), done) == SSL_ERROR_WANT_READ) {
    return false;
  }
  return failed();
}

std::optional<std::chrono::days> Tls::certificate_left() const
{
  const X509* const certificate = m_library->SSL_get0_peer_certificate(m_session.get());
  int days = 0, seconds = 0;
  const bool known =
      certificate != nullptr &&
      m_library->ASN1_TIME_diff(&days, &seconds, nullptr, m_library->X509_get0_notAfter(certificate)) == 1;
  return known ? std::optional(std::chrono::days(days)) : std::nullopt;
}

Result<Done> Tls::encrypt(std::string_view plain)
{
  while (!plain.empty()) {
    m_library->ERR_clear_error();
    const int count = m_library->SSL_write(m_session.get(), plain.data(), size_of(plain));
    if (count <= 0) {
      return failed();
    }
    plain.remove_prefix(static_cast<std::size_t>(count));
  }
  return Done{};
}

std::string Tls::to_send()
{
  std::string bytes(m_library->BIO_ctrl_pending(m_to_send), '\0');
  if (!bytes.empty()) {
    m_library->BIO_read(m_to_send, bytes.data(), size_of(bytes));
  }
  return bytes;
}

void Tls::add_received(std::string_view bytes) { m_library->BIO_write(m_received, bytes.data(), size_of(bytes)); }

Result<std::string> Tls::decrypt()
{
  std::string plain;
  std::array<char, 16384> bytes;  // NOLINT(*-member-init): SSL_read fills it
  for (;;) {
    m_library->ERR_clear_error();
    const int count = m_library->SSL_read(m_session.get(), bytes.data(), static_cast<int>(bytes.size()));
    if (count > 0) {
      plain.append(bytes.data(), static_cast<std::size_t>(count));
      continue;
    }
    const int why = m_library->SSL_get_error(m_session.get(), count);
    // After close_notify the socket ends too, and the reader of the socket reports that.
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_ZERO_RETURN || !plain.empty()) {
      return plain;
    }
    return failed();
  }
}

Error Tls::failed() const
{
  const long verified = m_session ? m_library->SSL_get_verify_result(m_session.get()) : X509_V_OK;
  if (verified != X509_V_OK) {
    return bad_certificate(verified);
  }
  const int code = ERR_GET_REASON(m_library->ERR_peek_error());
  // Go answers with bad_certificate where none was given.
  if (code == certificate_required || (code == bad_certificate_alert && !m_has_certificate)) {
    return {ErrorCode::refused, m_where + " wants a client certificate (give --cert and --tls-key)"};
  }
  if (code >= bad_certificate_alert && code <= access_denied) {
    return {ErrorCode::refused, m_where + " does not accept the client certificate: " + reason() +
                                    " (--cert must be one that the server's CA has signed)"};
  }
  if (code == handshake_failure) {
    return {ErrorCode::refused, m_where +
                                    " refused the TLS handshake (if it wants a client certificate: "
                                    "--cert and --tls-key)"};
  }
  return {ErrorCode::server_not_ready, "TLS with " + m_where + " failed: " + reason()};
}

Error Tls::bad_certificate(long why) const
{
  const std::string text = "the certificate of " + m_where + " ";
  switch (why) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return {ErrorCode::server_not_ready, text + "has expired (renew it there; is this host's clock right?)"};
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return {ErrorCode::server_not_ready, text + "is not valid yet (is this host's clock right?)"};
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return {ErrorCode::server_not_ready,
              text + "is not for '" + m_host + "' (name the server as its certificate does)"};
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return {ErrorCode::server_not_ready,
              text + "is not signed by a trusted CA (name the file of its CA with --cacert)"};
    default:
      return {ErrorCode::server_not_ready, text + "is invalid: " + m_library->X509_verify_cert_error_string(why)};
  }
}

Error Tls::bad_file(std::string_view option, const std::string& file) const
{
  const bool readable = ::access(file.c_str(), R_OK) == 0;
  const std::string why = readable ? reason() : std::generic_category().message(errno);
  return {ErrorCode::config, std::string(option) + ": cannot use " + printable(file) + ": " + why +
                                 " (a PEM file, whose key has no passphrase)"};
}

std::string Tls::reason() const
{
  const char* const text = m_library->ERR_reason_error_string(m_library->ERR_peek_error());
  return text != nullptr ? text : "no reason is known";
}

}  // namespace rlock
