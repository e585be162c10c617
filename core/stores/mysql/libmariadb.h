// SPDX-License-Identifier: Apache-2.0
// Loads libmariadb, the client library of MariaDB and MySQL, at the first use, so that a run on another store needs no libmariadb
// and spends no time on it. Private to stores/mysql.
#pragma once

#include <mariadb/mysql.h>
#include "base/result.h"
#include "base/shared_library.h"

namespace rlock::mysql {

// The functions that rlock calls.
#define RLOCK_LIBMARIADB_FUNCTIONS(use)                                                                               \
  use(mysql_init) use(mysql_close) use(mysql_optionsv) use(mysql_errno) use(mysql_error) use(mysql_get_socket)        \
      use(mysql_get_server_info) use(mysql_get_ssl_cipher) use(mysql_real_connect_start) use(mysql_real_connect_cont) \
          use(mysql_real_query_start) use(mysql_real_query_cont) use(mysql_store_result_start)                        \
              use(mysql_store_result_cont) use(mysql_next_result_start) use(mysql_next_result_cont)                   \
                  use(mysql_more_results) use(mysql_fetch_row) use(mysql_fetch_lengths) use(mysql_num_fields)         \
                      use(mysql_free_result)

struct Libmariadb {
  RLOCK_LIBMARIADB_FUNCTIONS(RLOCK_FUNCTION_MEMBER)
};

// Returns the same object to all threads, until the process ends. ErrorCode::config: libmariadb is not on this host.
Result<const Libmariadb*> libmariadb();

}  // namespace rlock::mysql
