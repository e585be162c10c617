// SPDX-License-Identifier: Apache-2.0
#include "stores/postgres/libpq.h"

namespace rlock::postgres {

Result<const Libpq*> libpq()
{
  return loaded_once<Libpq>(
      {.file = "libpq.so.5",
       .needed_by = "postgresql:// needs",
       .packages = "PostgreSQL's client library: libpq5 on Debian and Ubuntu, libpq on Fedora"},
      [](SharedLibrary& library) { return Libpq{RLOCK_LIBPQ_FUNCTIONS(RLOCK_FUNCTION_IN_LIBRARY)}; });
}

}  // namespace rlock::postgres
