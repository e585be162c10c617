// SPDX-License-Identifier: Apache-2.0
#include "watch/renewal.h"

#include <algorithm>

namespace rlock {

RenewalPolicy renewal_policy(Millis ttl, Millis kill_margin)
{
  const Millis try_for = std::clamp(ttl / 20, Millis{20}, Millis{5000});
  return {.every = ttl / 3,
          .retry_every = std::clamp(ttl / 100, Millis{5}, Millis{1000}),
          .try_for = try_for,
          .longest_try = std::max(try_for, ttl / 6),
          .kill_margin = kill_margin};
}

// Loss is decided before renewal: past the margin the job must already be dying, and a renewal that happened to succeed
// would only hide that we were late.
Step next_step(const RenewalState& lease, const RenewalPolicy& policy, Instant now)
{
  const Instant give_up = lease.valid_until - policy.kill_margin;
  if (now >= give_up) {
    return Lost{};
  }

  const bool failing = lease.last_try != lease.last_kept;
  const Instant due = failing ? lease.last_try + policy.retry_every : lease.last_kept + policy.every;
  if (now < due) {
    return Sleep{std::min(due, give_up)};
  }
  const Millis failing_for = std::chrono::floor<Millis>(now - (lease.last_kept + policy.every));
  const Millis try_for = std::clamp(failing_for, policy.try_for, policy.longest_try);
  return Renew{std::min(now + try_for, give_up)};
}

}  // namespace rlock
