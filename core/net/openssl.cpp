// SPDX-License-Identifier: Apache-2.0
#include "net/openssl.h"

#include <optional>

namespace rlock {
namespace {

// The version of the headers, because the types come from them.
#define RLOCK_TEXT_OF(number) #number
#define RLOCK_LIBRARY(version) "libssl.so." RLOCK_TEXT_OF(version)
constexpr const char* file = RLOCK_LIBRARY(OPENSSL_SHLIB_VERSION);

// The functions of libcrypto are found too, because libssl depends on it.
std::optional<OpenSsl> load()
{
  SharedLibrary library(file);
  const OpenSsl functions{RLOCK_OPENSSL_FUNCTIONS(RLOCK_FUNCTION_IN_LIBRARY)};
  return library.is_complete() ? std::optional(functions) : std::nullopt;
}

}  // namespace

Result<const OpenSsl*> openssl()
{
  static const std::optional<OpenSsl> loaded = load();
  if (!loaded) {
    return cannot_load(file, "TLS needs", "OpenSSL's library: libssl3 on Debian and Ubuntu, openssl-libs on Fedora");
  }
  return &*loaded;
}

}  // namespace rlock
