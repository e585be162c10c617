// SPDX-License-Identifier: Apache-2.0
// Loads libpq, PostgreSQL's client library, at the first use, so that a run on another store needs no libpq and spends no time
// on it. Private to stores/postgres.
#pragma once

#include <libpq-fe.h>
#include "base/result.h"
#include "base/shared_library.h"

namespace rlock::postgres {

// The functions that rlock calls.
#define RLOCK_LIBPQ_FUNCTIONS(use)                                                                                  \
  use(PQconninfoParse) use(PQconninfoFree) use(PQconnectStartParams) use(PQconnectPoll) use(PQfinish) use(PQstatus) \
      use(PQsocket) use(PQsetnonblocking) use(PQerrorMessage) use(PQconnectionNeedsPassword) use(PQsendQueryParams) \
          use(PQsendQuery) use(PQflush) use(PQisBusy) use(PQconsumeInput) use(PQgetResult) use(PQclear)             \
              use(PQresultStatus) use(PQresultErrorField) use(PQntuples) use(PQgetisnull) use(PQgetvalue)           \
                  use(PQgetlength) use(PQnotifies) use(PQfreemem) use(PQserverVersion) use(PQbackendPID)            \
                      use(PQnfields) use(PQsetNoticeReceiver)

struct Libpq {
  RLOCK_LIBPQ_FUNCTIONS(RLOCK_FUNCTION_MEMBER)
};

// Returns the same object to all threads, until the process ends. ErrorCode::config: libpq is not on this host.
Result<const Libpq*> libpq();

}  // namespace rlock::postgres
