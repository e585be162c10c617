// SPDX-License-Identifier: Apache-2.0
// Measures how fast locks are on a server, with locks that no other client uses.
#pragma once

#include "doctor/distribution.h"
#include "store/open.h"

#include <optional>
#include <string>

namespace rlock {

struct BenchPlan {
  ServerSpec server;
  std::string prefix;    // where this user may take locks
  unsigned connections;  // that take and release at the same time, each a lock of its own
  Millis time;           // of each measurement
};

struct BenchResult {
  Distribution acquire;  // of a free lock
  Distribution release;
  std::optional<Distribution> hand_over;  // from the release until the next waiter has the lock; missing for a quorum
  double pairs_per_second = 0;            // acquire and release, of all connections together
};

// Uses a thread for each connection. Leaves nothing behind, also when `stop` ends it with ErrorCode::interrupted,
// unless the server can no longer be reached.
Result<BenchResult> bench(const BenchPlan& plan, const Clock& clock, StopToken stop);

}  // namespace rlock
