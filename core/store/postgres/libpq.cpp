// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/libpq.h"

#include <optional>

namespace rlock::postgres {
namespace {

constexpr const char* file = "libpq.so.5";

std::optional<Libpq> load()
{
  SharedLibrary library(file);
  const Libpq functions{RLOCK_LIBPQ_FUNCTIONS(RLOCK_FUNCTION_IN_LIBRARY)};
  return library.is_complete() ? std::optional(functions) : std::nullopt;
}

}  // namespace

Result<const Libpq*> libpq()
{
  static const std::optional<Libpq> loaded = load();
  if (!loaded) {
    return cannot_load(file, "postgresql:// needs",
                       "PostgreSQL's client library: libpq5 on Debian and Ubuntu, libpq on Fedora");
  }
  return &*loaded;
}

}  // namespace rlock::postgres
