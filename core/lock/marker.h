// SPDX-License-Identifier: Apache-2.0
// The marker of a server of a quorum, which tells for how long the server has had its data: the request to it and the answer
// (lua/single/marker.lua). Plain values.
#pragma once

#include <cstdint>
#include <string_view>
#include "base/defaults.h"

namespace rlock {

// The marker: one key for each server and database, shared by all locks and all quorums.
inline constexpr std::string_view marker_key = "rlock:quorum";

struct DataAge {
  Millis age;              // time since the data began
  Millis longest_ttl;      // the longest ttl of the locks on the server
  std::int64_t since = 0;  // when the data began: milliseconds by the server's clock
  bool sure = false;       // the data was once older than every ttl, so the server has forgotten no lock
};

// What a client writes into the marker. The default changes nothing.
struct MarkerNews {
  Millis ttl{0};                  // the ttl of a lock on the server
  std::int64_t counts_since = 0;  // DataAge::since, if the data is old enough; 0: unknown
};

}  // namespace rlock
