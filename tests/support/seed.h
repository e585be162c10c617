// SPDX-License-Identifier: Apache-2.0
// The seed of all random numbers in this run: RLOCK_TEST_SEED, or a random number. A test that fails prints the seed.
#pragma once

#include <cstdint>

namespace rlock::test {

std::uint64_t seed();

}  // namespace rlock::test
