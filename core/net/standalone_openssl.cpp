// SPDX-License-Identifier: Apache-2.0
// Replaces openssl.cpp in the standalone program. OpenSSL is linked, because a static program cannot load a library.
#include "net/openssl.h"

#include <cstdlib>

#include <unistd.h>

namespace rlock {
namespace {

// The archive of OpenSSL knows where the distribution that compiled it keeps the certificates of its CAs. Other distributions
// keep them in one of these files.
constexpr const char* bundles[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                   "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

bool is_readable(const char* file) { return ::access(file, R_OK) == 0; }

bool default_places_exist()
{
  return std::getenv(::X509_get_default_cert_file_env()) != nullptr ||
         std::getenv(::X509_get_default_cert_dir_env()) != nullptr || is_readable(::X509_get_default_cert_file()) ||
         is_readable(::X509_get_default_cert_dir());
}

int trust_authorities_of_host(SSL_CTX* context)
{
  if (!default_places_exist()) {
    for (const char* const bundle : bundles) {
      if (is_readable(bundle)) {
        return ::SSL_CTX_load_verify_file(context, bundle);
      }
    }
  }
  return ::SSL_CTX_set_default_verify_paths(context);
}

OpenSsl linked()
{
  OpenSsl functions{RLOCK_OPENSSL_FUNCTIONS(RLOCK_LINKED_FUNCTION)};
  functions.SSL_CTX_set_default_verify_paths = trust_authorities_of_host;
  return functions;
}

}  // namespace

Result<const OpenSsl*> openssl()
{
  static const OpenSsl functions = linked();
  return &functions;
}

}  // namespace rlock
