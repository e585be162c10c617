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

}  // namespace rlock
