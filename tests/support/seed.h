// SPDX-License-Identifier: Apache-2.0
// The seed of all chance in this run: RLOCK_TEST_SEED, or drawn. A failing test prints it.
#pragma once

#include <cstdint>

namespace rlock::test {

std::uint64_t seed();

}  // namespace rlock::test
