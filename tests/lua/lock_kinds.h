// SPDX-License-Identifier: Apache-2.0
// All kinds of lock, for tests of what they have in common.
#pragma once

#include "lock/mode.h"

#include <vector>

namespace rlock::test {

struct LockKind {
  const char* shown;
  Mode mode;
};

inline const std::vector<LockKind> lock_kinds{
    {"plain", Plain{}}, {"reader", Reader{}}, {"writer", Writer{}}, {"permits", Permits{3}}, {"string", StringLock{}}};

}  // namespace rlock::test
