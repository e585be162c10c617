// SPDX-License-Identifier: Apache-2.0
// Releases a lock on a server that may not answer at once.
#pragma once

#include "base/call_limits.h"
#include "base/clock.h"
#include "base/result.h"
#include "lock/store.h"

#include <functional>

namespace rlock {

constexpr Millis first_release_pause{50};  // between two attempts

struct RetryReleaseOptions {
  Millis server_timeout;                       // several attempts fit in it
  Instant give_up;                             // when trying ends
  Millis longest_pause = first_release_pause;  // pauses double up to it
};

// Calls `release` at least once, and again until it succeeds, fails for good or `give_up` has come; calls
// `forget_connection` before each further attempt. An Error is that of an attempt that had its full time, if any had.
Result<Release> retry_release(const Clock& clock, const RetryReleaseOptions& options,
                              const std::function<Result<Release>(const CallLimits&)>& release,
                              const std::function<void()>& forget_connection);

}  // namespace rlock
