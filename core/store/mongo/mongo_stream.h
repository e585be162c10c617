// SPDX-License-Identifier: Apache-2.0
// The sockets on which libmongoc speaks. rlock makes them itself, because those of libmongoc have no FD_CLOEXEC, and wait without
// regard to a deadline or a StopToken. Private to store/mongo.
#pragma once

#include <optional>
#include "base/clock.h"
#include "base/defaults.h"
#include "base/result.h"
#include "store/mongo/libmongoc.h"

namespace rlock::mongo {

// What the sockets of one client share. Outlives the client.
struct StreamContext {
  const Clock* clock = nullptr;
  const CallLimits* limit = nullptr;  // of the call that is under way; nullptr: there is none, so no answer is read
  pid_t process = 0;                  // that made the client: another process must not write to its sockets
  std::optional<Error> failure = std::nullopt;  // why a socket failed last
};

// A mongoc_stream_initiator_t; `context` is a StreamContext.
mongoc_stream_t* open_stream(const mongoc_uri_t* uri, const mongoc_host_list_t* host, void* context,
                             bson_error_t* error);

}  // namespace rlock::mongo
