// SPDX-License-Identifier: Apache-2.0
// Measures how fast locks are on a server, on keys that no other client uses.
#pragma once

#include "doctor/distribution.h"
#include "store/open.h"

#include <optional>
#include <string>

namespace rlock {

struct BenchPlan {
  ServerSpec server;
  std::string prefix;    // the prefix of the names of the locks that this user may take
  unsigned connections;  // how many connections take and release at the same time, each another lock
  Millis time;           // the length of each measurement
};

struct BenchResult {
  Distribution acquire;  // the times to take a free lock
  Distribution release;
  std::optional<Distribution>
      hand_over;                // the times from the release until the next waiter has the lock; nullopt: a quorum
  double pairs_per_second = 0;  // an acquire and a release are a pair; of all connections together
};

// Runs the measurements, with a thread for each connection. Leaves nothing on the server, also when `stop` is requested
// (ErrorCode::interrupted), unless the server can no longer be reached.
Result<BenchResult> bench(const BenchPlan& plan, const Clock& clock, StopToken stop);

}  // namespace rlock
