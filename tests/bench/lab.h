// SPDX-License-Identifier: Apache-2.0
// Shared by the benchmarks.
#pragma once

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
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

// The fixtures report failures through doctest. Outside of a test case a failure ends the program.
class FixtureFailures {
 public:
  FixtureFailures()
  {
    m_context.setAsDefaultForAssertsOutOfTestCases();
    m_context.setAssertHandler([](const doctest::AssertData& failed) {
      std::fprintf(stderr, "%s:%d: %s\n", failed.m_file, failed.m_line, failed.m_expr);
      std::exit(1);
    });
  }

 private:
  doctest::Context m_context;
};

}  // namespace rlock::bench
