// SPDX-License-Identifier: Apache-2.0
// Loads libnghttp2, which frames HTTP/2, at the first use, so that a run on another store needs no libnghttp2 and spends no time on
// it. Private to stores/etcd.
#pragma once

#include <nghttp2/nghttp2.h>
#include "base/result.h"
#include "base/shared_library.h"

namespace rlock::etcd {

// The functions that rlock calls.
#define RLOCK_LIBNGHTTP2_FUNCTIONS(use)                                                                               \
  use(nghttp2_session_callbacks_new) use(nghttp2_session_callbacks_del)                                               \
      use(nghttp2_session_callbacks_set_on_header_callback) use(nghttp2_session_callbacks_set_on_frame_recv_callback) \
          use(nghttp2_session_callbacks_set_on_data_chunk_recv_callback)                                              \
              use(nghttp2_session_callbacks_set_on_stream_close_callback) use(nghttp2_session_client_new)             \
                  use(nghttp2_session_del) use(nghttp2_session_mem_send) use(nghttp2_session_mem_recv)                \
                      use(nghttp2_session_want_read) use(nghttp2_session_want_write) use(nghttp2_session_resume_data) \
                          use(nghttp2_submit_settings) use(nghttp2_submit_request) use(nghttp2_submit_rst_stream)     \
                              use(nghttp2_strerror)

struct Libnghttp2 {
  RLOCK_LIBNGHTTP2_FUNCTIONS(RLOCK_FUNCTION_MEMBER)
};

// Returns the same object to all threads, until the process ends. ErrorCode::config: libnghttp2 is not on this host.
Result<const Libnghttp2*> libnghttp2();

}  // namespace rlock::etcd
