// SPDX-License-Identifier: Apache-2.0
// How a fixture ends when it cannot go on.
#pragma once

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

namespace rlock::test {

// Fails the test case. Outside of a test case throws an exception with the text, because doctest would print nothing.
[[noreturn]] inline void give_up(const std::string& why)
{
  if (doctest::is_running_in_test) {
    FAIL(why);
  }
  throw std::runtime_error(why);
}

}  // namespace rlock::test
