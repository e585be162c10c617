// SPDX-License-Identifier: Apache-2.0
// Instead of openssl.cpp where the program is linked statically and cannot load a library.
#include "net/openssl.h"

namespace rlock {

Result<const OpenSsl*> openssl()
{
  static constexpr OpenSsl linked{
#define RLOCK_ADDRESS(name) .name = &::name,
      RLOCK_OPENSSL_FUNCTIONS(RLOCK_ADDRESS)
#undef RLOCK_ADDRESS
  };
  return &linked;
}

}  // namespace rlock
