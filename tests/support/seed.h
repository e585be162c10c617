// SPDX-License-Identifier: Apache-2.0
// The seed of all random numbers in this run: RLOCK_TEST_SEED, or a random one. A failing test prints it.
#pragma once

#include <cstdint>

namespace rlock::test {

std::uint64_t seed();

}  // namespace rlock::test
