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

// The limits of a call that makes any number of requests: `timeout` bounds each answer, and `whole` bounds the call.
struct PerAnswer {
  const Clock& clock;
  Millis timeout;
  CallLimits whole;
  // The limits of the next request.
  [[nodiscard]] CallLimits next() const
  {
    return {.deadline = std::min(clock.now() + timeout, whole.deadline), .stop = whole.stop};
  }
};

}  // namespace rlock
