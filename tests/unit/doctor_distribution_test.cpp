// SPDX-License-Identifier: Apache-2.0
#include "doctor/bench.h"
#include "support/test.h"

using namespace rlock::test;

TEST_CASE("distribution: percentiles are values that were seen")
{
  std::vector<Micros> times;
  for (int i = 100; i > 0; --i) {
    times.emplace_back(i);
  }
  const Distribution all = distribution_of(times);
  CHECK(all.count == 100);
  CHECK(all.p50 == Micros{50});
  CHECK(all.p90 == Micros{90});
  CHECK(all.p99 == Micros{99});
  CHECK(all.max == Micros{100});
  const Distribution one = distribution_of({Micros{7}});
  CHECK(one.p50 == Micros{7});
  CHECK(one.p99 == Micros{7});
  CHECK(distribution_of({}).count == 0);
}

TEST_CASE("distribution: the histogram goes by 1, 2, 5 and has everything in it, once")
{
  const Distribution all = distribution_of({Micros{3}, Micros{5}, Micros{6}, Micros{45}, Micros{0}});
  std::vector<long> bounds, counts;
  for (const Bucket& bucket : all.histogram) {
    bounds.push_back(bucket.most.count());
    counts.push_back(static_cast<long>(bucket.count));
  }
  CHECK(bounds == std::vector<long>{1, 2, 5, 10, 20, 50});
  CHECK(counts == std::vector<long>{1, 0, 2, 1, 0, 1});
}
