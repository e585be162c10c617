// SPDX-License-Identifier: Apache-2.0
// How many times as long a build may take for what the processor does. Only for limits of what must happen at all.
#pragma once

namespace rlock::test {

// A build with sanitizers takes longer for everything.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int slowness = 3;
#else
inline constexpr int slowness = 1;
#endif

}  // namespace rlock::test
