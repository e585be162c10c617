// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/libcurl.h"

namespace rlock::s3 {
namespace {

// The first version with which this was tried. It signs all headers, and takes the hash of the body from one.
constexpr unsigned oldest_version = 0x075800;  // 7.88.0

}  // namespace

Result<const Libcurl*> libcurl()
{
  const auto loaded =
      loaded_once<Libcurl>({.file = "libcurl.so.4",
                            .needed_by = "s3:// needs",
                            .packages = "libcurl: libcurl4 on Debian and Ubuntu, libcurl on Fedora"},
                           [](SharedLibrary& library) {
                             const Libcurl functions{RLOCK_LIBCURL_FUNCTIONS(RLOCK_FUNCTION_IN_LIBRARY)};
                             if (library.is_complete()) {
                               functions.curl_global_init(CURL_GLOBAL_DEFAULT);
                             }
                             return functions;
                           });
  if (loaded && (*loaded)->curl_version_info(CURLVERSION_NOW)->version_num < oldest_version) {
    return Error{ErrorCode::config, "s3:// needs libcurl 7.88 or later, which signs requests (update libcurl)"};
  }
  return loaded;
}

}  // namespace rlock::s3
