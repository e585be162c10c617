// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/libnghttp2.h"

#include <optional>

namespace rlock::etcd {
namespace {

constexpr const char* file = "libnghttp2.so.14";

std::optional<Libnghttp2> load()
{
  SharedLibrary library(file);
  const Libnghttp2 functions{RLOCK_LIBNGHTTP2_FUNCTIONS(RLOCK_FUNCTION_IN_LIBRARY)};
  return library.is_complete() ? std::optional(functions) : std::nullopt;
}

}  // namespace

Result<const Libnghttp2*> libnghttp2()
{
  static const std::optional<Libnghttp2> loaded = load();
  if (!loaded) {
    return cannot_load(file, "etcd:// needs", "HTTP/2: libnghttp2-14 on Debian and Ubuntu, libnghttp2 on Fedora");
  }
  return &*loaded;
}

}  // namespace rlock::etcd
