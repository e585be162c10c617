// SPDX-License-Identifier: Apache-2.0
// Releases a lock on a server that may not answer at once.
#pragma once

#include "base/call_limits.h"
#include "base/clock.h"
#include "base/result.h"
#include "lock/store.h"

#include <functional>

namespace rlock {

constexpr Millis first_release_pause{50};  // the pause between the first two attempts

struct RetryReleaseOptions {
  Millis server_timeout;                       // long enough for several attempts
  Instant give_up;                             // when attempts end
  Millis longest_pause = first_release_pause;  // the pauses double up to this
};

// Calls `release` at least once, and again until it succeeds, fails for good, or `give_up` has come. Calls `forget_connection`
// before each further attempt. Returns the Error of the last attempt that had its full time, if there was one.
Result<Release> retry_release(const Clock& clock, const RetryReleaseOptions& options,
                              const std::function<Result<Release>(const CallLimits&)>& release,
                              const std::function<void()>& forget_connection);

}  // namespace rlock
