// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/libmariadb.h"

#include <optional>

namespace rlock::mysql {
namespace {

constexpr const char* file = "libmariadb.so.3";

std::optional<Libmariadb> load()
{
  SharedLibrary library(file);
  const Libmariadb functions{RLOCK_LIBMARIADB_FUNCTIONS(RLOCK_FUNCTION_IN_LIBRARY)};
  return library.is_complete() ? std::optional(functions) : std::nullopt;
}

}  // namespace

Result<const Libmariadb*> libmariadb()
{
  static const std::optional<Libmariadb> loaded = load();
  if (!loaded) {
    return cannot_load(file, "mysql:// and mariadb:// need",
                       "MariaDB's client library: libmariadb3 on Debian and Ubuntu, mariadb-connector-c on Fedora");
  }
  return &*loaded;
}

}  // namespace rlock::mysql
