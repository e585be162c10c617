// SPDX-License-Identifier: Apache-2.0
// Lets a program use the fixtures outside of a test case. Include this in one file, with DOCTEST_CONFIG_IMPLEMENT.
#pragma once

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace rlock::test {

// The fixtures report failures through doctest. Outside of a test case a failure is printed, and ends the program or
// throws std::runtime_error.
class FixtureFailures {
 public:
  enum class Then { exit, throws };
  explicit FixtureFailures(Then then = Then::exit)
  {
    m_context.setAsDefaultForAssertsOutOfTestCases();
    if (then == Then::exit) {
      m_context.setAssertHandler([](const doctest::AssertData& failed) {
        print(failed);
        std::exit(1);
      });
    } else {
      m_context.setAssertHandler([](const doctest::AssertData& failed) {
        print(failed);
        throw std::runtime_error(failed.m_expr);
      });
    }
  }

 private:
  static void print(const doctest::AssertData& failed)
  {
    std::fprintf(stderr, "%s:%d: %s\n", failed.m_file, failed.m_line, failed.m_expr);
  }

  doctest::Context m_context;
};

}  // namespace rlock::test
