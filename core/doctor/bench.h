// SPDX-License-Identifier: Apache-2.0
// Measures how fast locks are on a server, on keys that no other client uses.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>
#include "stores/open.h"

namespace rlock {

// The distribution of many measured times.

using Micros = std::chrono::microseconds;

struct Bucket {
  Micros most;  // the upper bound; `most` of the bucket before is the lower bound
  std::size_t count;
};

struct Distribution {
  std::size_t count = 0;
  Micros p50{0};
  Micros p90{0};
  Micros p99{0};
  Micros max{0};
  std::vector<Bucket> histogram;  // bounds 1, 2, 5, 10, …, from the first bucket that is not empty to the last
};

// The distribution of `times`. The p-th percentile is the least value that p % of all times do not exceed. A pure function.
Distribution distribution_of(std::vector<Micros> times);

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
