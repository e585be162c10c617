// SPDX-License-Identifier: Apache-2.0
// How long a call may take.
#pragma once

#include "base/clock.h"
#include "base/stop.h"

#include <algorithm>

namespace rlock {

// The call ends by `deadline`, and soon after `stop` is requested.
struct CallLimits {
  Instant deadline;
  StopToken stop;
};

// For a call that makes any number of requests: each answer has `timeout`, and all together have `whole`.
struct PerAnswer {
  const Clock& clock;
  Millis timeout;
  CallLimits whole;
  [[nodiscard]] CallLimits next() const
  {
    return {.deadline = std::min(clock.now() + timeout, whole.deadline), .stop = whole.stop};
  }
};

}  // namespace rlock
