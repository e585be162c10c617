// SPDX-License-Identifier: Apache-2.0
// For programs that use the fixtures outside of a test case. Include it in one file, with DOCTEST_CONFIG_IMPLEMENT.
#pragma once

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

namespace rlock::test {

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

}  // namespace rlock::test
