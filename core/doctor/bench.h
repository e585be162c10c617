// SPDX-License-Identifier: Apache-2.0
// How fast locks are on this server, asked with locks of our own.
#pragma once

#include "doctor/distribution.h"
#include "store/open.h"

#include <optional>
#include <string>

namespace rlock {

struct BenchPlan {
  ServerSpec server;
  std::string prefix;    // where this user may take locks
  unsigned connections;  // that take and release at once, each a lock of its own
  Millis time;           // for each of the measurements
};

struct BenchResult {
  Distribution acquire;  // of a free lock, one after the other
  Distribution release;
  std::optional<Distribution>
      hand_over;                // from releasing to the next in line having it; nobody stands in line for a quorum
  double pairs_per_second = 0;  // of all connections together
};

// A thread for each connection. Leaves nothing behind, also when `stop` ends it with ErrorCode::interrupted, unless the server
// cannot be reached any more.
Result<BenchResult> bench(const BenchPlan& plan, const Clock& clock, StopToken stop);

}  // namespace rlock
