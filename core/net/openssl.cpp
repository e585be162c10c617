// SPDX-License-Identifier: Apache-2.0
#include "net/openssl.h"

namespace rlock {

// The version of the headers, because the types come from them.
#define RLOCK_TEXT_OF(number) #number
#define RLOCK_LIBRARY(version) "libssl.so." RLOCK_TEXT_OF(version)

// The functions of libcrypto are found too, because libssl depends on it.
Result<const OpenSsl*> openssl()
{
  return loaded_once<OpenSsl>(
      {.file = RLOCK_LIBRARY(OPENSSL_SHLIB_VERSION),
       .needed_by = "TLS needs",
       .packages = "OpenSSL's library: libssl3 on Debian and Ubuntu, openssl-libs on Fedora"},
      [](SharedLibrary& library) { return OpenSsl{RLOCK_OPENSSL_FUNCTIONS(RLOCK_FUNCTION_IN_LIBRARY)}; });
}

}  // namespace rlock
