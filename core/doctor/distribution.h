// SPDX-License-Identifier: Apache-2.0
// The distribution of many measured times.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rlock {

using Micros = std::chrono::microseconds;

struct Bucket {
  Micros most;  // upper bound; the bucket before has the lower bound
  std::size_t count;
};

struct Distribution {
  std::size_t count = 0;
  Micros p50{0};
  Micros p90{0};
  Micros p99{0};
  Micros max{0};
  std::vector<Bucket> histogram;  // 1, 2, 5, 10, … from the first that is not empty to the last
};

// Pure. The p-th percentile is the least value that p % of all times do not exceed.
Distribution distribution_of(std::vector<Micros> times);

}  // namespace rlock
