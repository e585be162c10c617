// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/libpq.h"

#include <dlfcn.h>
#include <optional>
#include <string>

namespace rlock::postgres {
namespace {

constexpr const char* library = "libpq.so.5";

std::optional<Libpq> load()
{
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return std::nullopt;
  }
  Libpq loaded{};
  bool complete = true;
#define RLOCK_LOAD(name)                                                     \
  loaded.name = reinterpret_cast<decltype(&::name)>(::dlsym(handle, #name)); \
  complete = complete && loaded.name != nullptr;
  RLOCK_LIBPQ_FUNCTIONS(RLOCK_LOAD)
#undef RLOCK_LOAD
  return complete ? std::optional(loaded) : std::nullopt;
}

}  // namespace

Result<const Libpq*> libpq()
{
  static const std::optional<Libpq> loaded = load();
  if (!loaded) {
    return Error{ErrorCode::config, std::string("cannot load ") + library +
                                        ", which postgresql:// needs (install PostgreSQL's client library: libpq5 on "
                                        "Debian and Ubuntu, libpq on Fedora)"};
  }
  return &*loaded;
}

}  // namespace rlock::postgres
