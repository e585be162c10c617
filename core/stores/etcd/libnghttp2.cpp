// SPDX-License-Identifier: Apache-2.0
#include "stores/etcd/libnghttp2.h"

namespace rlock::etcd {

Result<const Libnghttp2*> libnghttp2()
{
  return loaded_once<Libnghttp2>(
      {.file = "libnghttp2.so.14",
       .needed_by = "etcd:// needs",
       .packages = "HTTP/2: libnghttp2-14 on Debian and Ubuntu, libnghttp2 on Fedora"},
      [](SharedLibrary& library) { return Libnghttp2{RLOCK_LIBNGHTTP2_FUNCTIONS(RLOCK_FUNCTION_IN_LIBRARY)}; });
}

}  // namespace rlock::etcd
