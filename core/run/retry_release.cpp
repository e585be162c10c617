// SPDX-License-Identifier: Apache-2.0
#include "run/retry_release.h"

#include <algorithm>
#include <optional>

namespace rlock {
namespace {

constexpr int attempts_per_timeout = 5;

}  // namespace

Result<Release> retry_release(const Clock& clock, const RetryReleaseOptions& options,
                              const std::function<Result<Release>(const CallLimits&)>& release,
                              const std::function<void()>& forget_connection)
{
  const Millis each = std::max(options.server_timeout / attempts_per_timeout, first_release_pause);
  Millis pause = first_release_pause;
  std::optional<Error> failure;
  for (;;) {
    const Instant now = clock.now();
    auto released = release({.deadline = std::min(now + each, options.give_up), .stop = StopToken::never()});
    if (released) {
      return released;
    }
    if (!failure || now + each <= options.give_up) {
      failure = released.error();
    }
    if (!is_passing(released.error().code)) {
      return *failure;
    }
    forget_connection();
    clock.sleep_until(std::min(clock.now() + pause, options.give_up), StopToken::never());
    if (clock.now() >= options.give_up) {
      return *failure;
    }
    pause = std::min(2 * pause, options.longest_pause);
  }
}

}  // namespace rlock
