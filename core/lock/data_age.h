// SPDX-License-Identifier: Apache-2.0
// What the marker of a server says: lua/single/marker.lua.
#pragma once

#include "base/clock.h"

#include <cstdint>
#include <string_view>

namespace rlock {

// One for each server and database, whatever locks and groups of servers share it.
inline constexpr std::string_view marker_key = "rlock:quorum";

struct DataAge {
  Millis age;              // for how long the server has had its data
  Millis longest_ttl;      // of the locks there
  std::int64_t since = 0;  // when that was, in ms by its own clock
  bool sure = false;       // it was old enough once: whatever ttl was used since, it has not forgotten
};

// What the marker is told: nothing, as it is.
struct MarkerNews {
  Millis ttl{0};                  // a lock there has it
  std::int64_t counts_since = 0;  // DataAge::since with which the server was found to count
};

}  // namespace rlock
