// SPDX-License-Identifier: Apache-2.0
// Skips a test case that cannot run on this machine or on this topology. ctest recognises the text and lists the case.
#pragma once

#include <doctest/doctest.h>

#include <string>

namespace rlock::test {

[[noreturn]] inline void skip(const std::string& why)
{
  FAIL("skipped here: " << why);
  throw;  // not reached; FAIL is not declared noreturn
}

}  // namespace rlock::test
