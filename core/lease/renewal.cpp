// SPDX-License-Identifier: Apache-2.0
#include "lease/renewal.h"

#include <algorithm>

namespace rlock {
namespace {

// A reader of the Java client sets the ttl of the whole lock to its own 30 s with each renewal. When that reader dies,
// its 30 s run out. So a reader of rlock renews often enough to set its own ttl again before.
constexpr Millis beside_foreign_readers{10'000};

}  // namespace

RenewalPolicy renewal_policy(Millis lease, Millis kill_after)
{
  const Millis try_for = std::clamp(lease / 20, Millis{20}, Millis{5000});
  return {.every = renewal_period(lease),
          .retry_every = std::clamp(lease / 100, Millis{5}, Millis{1000}),
          .try_for = try_for,
          .longest_try = std::max(try_for, lease / 6),
          .kill_after = kill_after};
}

RenewalPolicy renewal_policy(Millis lease, const Mode& mode, bool renews, Millis kill_after)
{
  RenewalPolicy policy = renewal_policy(lease, kill_after);
  if (!renews) {
    policy.every = std::min(policy.every, longest_check_period);
  }
  if (std::holds_alternative<Reader>(mode)) {
    policy.every = std::min(policy.every, beside_foreign_readers);
  }
  return policy;
}

RenewalPolicy confirmation_policy(Millis claim, Millis kill_after)
{
  RenewalPolicy policy = renewal_policy(claim, kill_after);
  policy.every = Millis{0};
  return policy;
}

// GiveUp comes before Renew: past that time the job must already be dying, and a renewal that succeeded would hide the
// delay.
Step next_step(const RenewalState& state, const RenewalPolicy& policy, Instant now)
{
  const Instant give_up = state.lease.signal_at(policy.kill_after);
  if (now >= give_up) {
    return GiveUp{};
  }

  const bool failing = state.last_try != state.last_kept;
  const Instant due = failing ? state.last_try + policy.retry_every : state.last_kept + policy.every;
  if (now < due) {
    return Sleep{std::min(due, give_up)};
  }
  const Millis failing_for = std::chrono::floor<Millis>(now - (state.last_kept + policy.every));
  const Millis try_for = std::clamp(failing_for, policy.try_for, policy.longest_try);
  return Renew{std::min(now + try_for, give_up)};
}

}  // namespace rlock
