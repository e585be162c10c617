// SPDX-License-Identifier: Apache-2.0
#include "doctor/distribution.h"

#include <algorithm>

namespace rlock {
namespace {

Micros percentile(const std::vector<Micros>& sorted, std::size_t percent)
{
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

// 1, 2, 5, 10, …
Micros next_bound(Micros bound)
{
  Micros::rep leading = bound.count();
  while (leading >= 10) {
    leading /= 10;
  }
  return leading == 2 ? bound * 5 / 2 : bound * 2;
}

std::vector<Bucket> histogram_of(const std::vector<Micros>& sorted)
{
  std::vector<Bucket> buckets;
  auto from = sorted.begin();
  for (Micros bound{1}; from != sorted.end(); bound = next_bound(bound)) {
    const auto to = std::upper_bound(from, sorted.end(), bound);
    if (to != from || !buckets.empty()) {
      buckets.push_back({bound, static_cast<std::size_t>(to - from)});
    }
    from = to;
  }
  return buckets;
}

}  // namespace

Distribution distribution_of(std::vector<Micros> times)
{
  if (times.empty()) {
    return {};
  }
  std::sort(times.begin(), times.end());
  return {.count = times.size(),
          .p50 = percentile(times, 50),
          .p90 = percentile(times, 90),
          .p99 = percentile(times, 99),
          .max = times.back(),
          .histogram = histogram_of(times)};
}

}  // namespace rlock
