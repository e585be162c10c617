// SPDX-License-Identifier: Apache-2.0
#include "stores/mysql/libmariadb.h"

namespace rlock::mysql {

Result<const Libmariadb*> libmariadb()
{
  return loaded_once<Libmariadb>(
      {.file = "libmariadb.so.3",
       .needed_by = "mysql:// and mariadb:// need",
       .packages = "MariaDB's client library: libmariadb3 on Debian and Ubuntu, mariadb-connector-c on Fedora"},
      [](SharedLibrary& library) { return Libmariadb{RLOCK_LIBMARIADB_FUNCTIONS(RLOCK_FUNCTION_IN_LIBRARY)}; });
}

}  // namespace rlock::mysql
