// SPDX-License-Identifier: Apache-2.0
// The sockets on which libmongoc speaks. rlock makes them itself, because those of libmongoc have no FD_CLOEXEC, and wait without
// regard to a deadline or a StopToken. Private to stores/mongo.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/clock.h"
#include "base/defaults.h"
#include "base/result.h"
#include "stores/mongo/libmongoc.h"

namespace rlock::mongo {

// A connection to one server, under the buffer of libmongoc, which owns it.
struct OpenStream {
  std::string server;       // its name in libmongoc, "host:port"
  mongoc_stream_t* stream;  // speaks TLS where the URL wants it
  mongoc_stream_t* socket;  // under TLS; else the same as `stream`
};

// What the sockets of one client share. Outlives the client.
struct StreamContext {
  const Clock* clock = nullptr;
  const CallLimits* limit = nullptr;  // of the call that is under way; nullptr: there is none, so no answer is read
  pid_t process = 0;                  // that made the client: another process must not write to its sockets
  std::optional<Error> failure = std::nullopt;  // why a socket failed last
  bool was_heard = false;                       // a server has sent something since the client was made
  std::vector<OpenStream> open = {};            // in the order in which they were opened
};

// A mongoc_stream_initiator_t; `context` is a StreamContext.
mongoc_stream_t* open_stream(const mongoc_uri_t* uri, const mongoc_host_list_t* host, void* context,
                             bson_error_t* error);

// How rlock itself uses a connection that libmongoc has opened, while no call of libmongoc is under way. None of them waits.
int descriptor_of(const OpenStream& connection);
bool write_now(const OpenStream& connection,
               std::string_view bytes);  // false: the connection does not take all of them
// Appends what has arrived to `bytes`, which become no longer than `most`. False: the connection has ended.
bool read_now(const OpenStream& connection, std::string& bytes, std::size_t most);

}  // namespace rlock::mongo
