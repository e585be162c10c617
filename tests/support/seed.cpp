// SPDX-License-Identifier: Apache-2.0
#include "support/seed.h"

#include <cstdlib>
#include <random>
#include <string>

namespace rlock::test {

std::uint64_t seed()
{
  static const std::uint64_t value = [] {
    const char* given = std::getenv("RLOCK_TEST_SEED");
    return given != nullptr ? std::stoull(given) : std::random_device{}();
  }();
  return value;
}

}  // namespace rlock::test
