// SPDX-License-Identifier: Apache-2.0
// Loads OpenSSL at the first TLS connection, so that rlock without TLS needs no OpenSSL and spends no time on it. Private to net.
#pragma once

#include "base/result.h"
#include "base/shared_library.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

static_assert(OPENSSL_VERSION_MAJOR >= 3, "rlock needs the headers of OpenSSL 3 or newer");

namespace rlock {

// The functions that rlock calls. Much of OpenSSL's manual is macros that call one of the three *_ctrl.
// clang-format off
#define RLOCK_OPENSSL_FUNCTIONS(use) \
  use(TLS_client_method) use(SSL_CTX_new) use(SSL_CTX_free) use(SSL_CTX_ctrl) use(SSL_CTX_set_options) \
  use(SSL_CTX_set_verify) use(SSL_CTX_set_default_verify_paths) use(SSL_CTX_load_verify_file) \
  use(SSL_CTX_set_default_passwd_cb) use(SSL_CTX_use_certificate_chain_file) use(SSL_CTX_use_PrivateKey_file) \
  use(SSL_new) use(SSL_free) use(SSL_ctrl) use(SSL_set_bio) use(SSL_set_connect_state) use(SSL_set1_host) \
  use(SSL_set_hostflags) use(SSL_set_alpn_protos) use(SSL_get0_param) use(SSL_do_handshake) use(SSL_read) \
  use(SSL_write) use(SSL_get_error) use(SSL_get_verify_result) use(SSL_get0_peer_certificate) use(X509_get0_notAfter) \
  use(ASN1_TIME_diff) use(X509_VERIFY_PARAM_set1_ip_asc) use(X509_verify_cert_error_string) use(BIO_new) \
  use(BIO_s_mem) use(BIO_read) use(BIO_write) use(BIO_ctrl_pending) use(ERR_clear_error) use(ERR_peek_error) \
  use(ERR_reason_error_string)
// clang-format on

struct OpenSsl {
  RLOCK_OPENSSL_FUNCTIONS(RLOCK_FUNCTION_MEMBER)
};

// Returns the same object to all threads, until the process ends. ErrorCode::config: OpenSSL is not on this host.
Result<const OpenSsl*> openssl();

}  // namespace rlock
