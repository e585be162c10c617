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

inline void skip_if(bool is_missing, const std::string& why)
{
  if (is_missing) {
    skip(why);
  }
}

inline void skip_with_address_sanitizer([[maybe_unused]] const std::string& why)
{
#ifdef __SANITIZE_ADDRESS__
  skip(why);
#endif
}

}  // namespace rlock::test
