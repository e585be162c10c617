// SPDX-License-Identifier: Apache-2.0
// Loads libmongoc, MongoDB's C driver, at the first use, so that a run on another store needs no libmongoc and spends no time on
// it. Private to stores/mongo.
#pragma once

#include <mongoc/mongoc.h>
#include "base/result.h"
#include "base/shared_library.h"

namespace rlock::mongo {

// The functions that rlock calls. Those of libbson are found too, because libmongoc depends on it.
// clang-format off
#define RLOCK_LIBMONGOC_FUNCTIONS(use) \
  use(mongoc_init) use(mongoc_log_set_handler) use(mongoc_uri_new_with_error) use(mongoc_uri_destroy) \
  use(mongoc_uri_get_hosts) use(mongoc_uri_get_srv_hostname) use(mongoc_uri_get_database) \
  use(mongoc_uri_set_username) use(mongoc_uri_set_password) use(mongoc_uri_get_tls) \
  use(mongoc_uri_get_option_as_utf8) use(mongoc_uri_get_option_as_bool) use(mongoc_uri_set_option_as_int32) \
  use(mongoc_uri_option_is_utf8) use(mongoc_uri_option_is_int32) use(mongoc_uri_option_is_int64) \
  use(mongoc_uri_option_is_bool) use(mongoc_client_new_from_uri_with_error) use(mongoc_client_destroy) \
  use(mongoc_client_set_stream_initiator) use(mongoc_client_set_error_api) use(mongoc_client_select_server) \
  use(mongoc_client_command_simple_with_server_id) use(mongoc_server_description_id) \
  use(mongoc_server_description_hello_response) use(mongoc_server_description_destroy) \
  use(mongoc_server_description_host) use(mongoc_stream_tls_new_with_hostname) use(mongoc_stream_tls_handshake_block) \
  use(mongoc_stream_buffered_new) use(mongoc_stream_destroy) use(bson_new) use(bson_destroy) use(bson_get_data) \
  use(bson_append_utf8) use(bson_append_int32) use(bson_append_int64) use(bson_append_bool) use(bson_append_binary) \
  use(bson_append_date_time) use(bson_append_document) use(bson_append_array) use(bson_utf8_validate) \
  use(bson_iter_init_from_data) use(bson_iter_find) use(bson_iter_next) use(bson_iter_key) use(bson_iter_type) \
  use(bson_iter_utf8) use(bson_iter_binary) use(bson_iter_as_int64) use(bson_iter_as_bool) use(bson_iter_date_time) \
  use(bson_iter_document) use(bson_iter_array)
// clang-format on

struct Libmongoc {
  RLOCK_LIBMONGOC_FUNCTIONS(RLOCK_FUNCTION_MEMBER)
};

// Returns the same object to all threads, until the process ends. ErrorCode::config: libmongoc is not on this host.
Result<const Libmongoc*> libmongoc();
// The same, after a first call has found it.
inline const Libmongoc& lib() { return **libmongoc(); }

struct FreeUri {
  void operator()(mongoc_uri_t* uri) const { lib().mongoc_uri_destroy(uri); }
};

}  // namespace rlock::mongo
