// SPDX-License-Identifier: Apache-2.0
// Shared by the benchmarks.
#pragma once

#define DOCTEST_CONFIG_IMPLEMENT
#include "support/fixture_failures.h"

#include <algorithm>
#include <string>
#include <vector>

namespace rlock::bench {

using Words = std::vector<std::string>;

inline Words operator+(Words left, const Words& right)
{
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

inline double median(std::vector<double> values)
{
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

using test::FixtureFailures;

}  // namespace rlock::bench
