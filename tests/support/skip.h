// SPDX-License-Identifier: Apache-2.0
// Leaves a test case that cannot run on this machine. ctest knows the words and lists the case.
#pragma once

#include <doctest/doctest.h>

#include <string>

namespace rlock::test {

[[noreturn]] inline void skip(const std::string& why)
{
  FAIL("skipped here: " << why);
  throw;  // not reached; FAIL does not say that it never returns
}

}  // namespace rlock::test
