// SPDX-License-Identifier: Apache-2.0
// Loads libcurl at the first use, so that a run on another store needs no libcurl and spends no time on it. Private to stores/s3.
#pragma once

#include <curl/curl.h>
#include "base/result.h"
#include "base/shared_library.h"

namespace rlock::s3 {

// The functions that rlock calls.
#define RLOCK_LIBCURL_FUNCTIONS(use)                                                                                 \
  use(curl_global_init) use(curl_version_info) use(curl_getdate) use(curl_slist_append) use(curl_slist_free_all)     \
      use(curl_easy_init) use(curl_easy_setopt) use(curl_easy_getinfo) use(curl_easy_header) use(curl_easy_strerror) \
          use(curl_easy_cleanup) use(curl_multi_init) use(curl_multi_add_handle) use(curl_multi_remove_handle)       \
              use(curl_multi_perform) use(curl_multi_poll) use(curl_multi_info_read) use(curl_multi_cleanup)

struct Libcurl {
  RLOCK_LIBCURL_FUNCTIONS(RLOCK_FUNCTION_MEMBER)
};

// Returns the same object to all threads, until the process ends. ErrorCode::config: libcurl is not on this host, or cannot sign
// requests.
Result<const Libcurl*> libcurl();
// The same, after a first call has found it.
inline const Libcurl& lib() { return **libcurl(); }

struct FreeList {
  void operator()(curl_slist* list) const { lib().curl_slist_free_all(list); }
};
struct FreeEasy {
  void operator()(CURL* easy) const { lib().curl_easy_cleanup(easy); }
};

}  // namespace rlock::s3
