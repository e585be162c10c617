// SPDX-License-Identifier: Apache-2.0
#include "lease/renewal.h"

#include <algorithm>
#include "base/defaults.h"
#include "base/duration.h"
#include "lock/lease_budget.h"

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

RenewalPolicy renewal_policy(Millis lease, const LockKind& kind, bool renews, Millis kill_after)
{
  RenewalPolicy policy = renewal_policy(lease, kill_after);
  if (!renews) {
    policy.every = std::min(policy.every, longest_check_period);
  }
  if (std::holds_alternative<Reader>(kind)) {
    policy.every = std::min(policy.every, beside_foreign_readers);
  }
  return policy;
}

RenewalPolicy confirmation_policy(Millis claim, Millis kill_after)
{
  RenewalPolicy policy = renewal_policy(claim, kill_after);
  policy.every = Millis{0};
  policy.longest_try = std::max(policy.try_for, claim / 3);  // there is time: the first try begins with the claim
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

Millis clock_step(const ClockSample& before, const ClockSample& now)
{
  const std::chrono::nanoseconds server = now.server - before.server;
  const auto least = now.sent_at - before.heard_at;
  const auto most = now.heard_at - before.sent_at;
  if (server > most) {
    return std::chrono::floor<Millis>(server - most);
  }
  return server < least ? std::chrono::ceil<Millis>(server - least) : Millis{0};
}

Millis lease_reduction(const ClockSample& before, const ClockSample& now, Millis ttl)
{
  const auto between = std::chrono::ceil<Millis>(now.sent_at - before.sent_at);
  const Millis step = clock_step(before, now);
  if (step <= Millis{0} || between <= Millis{0}) {
    return Millis{0};
  }
  const double rate = static_cast<double>(step.count()) / static_cast<double>(between.count());
  const double over_ttl = std::min(rate, 1.0) * static_cast<double>(ttl.count());
  return std::clamp(Millis{static_cast<std::int64_t>(over_ttl)} - drift_allowed(ttl), Millis{0}, renewal_period(ttl));
}

std::string clock_step_text(Millis step, Millis ttl)
{
  const Millis by = std::chrono::abs(step);
  if (by <= drift_allowed(ttl)) {
    return "";
  }
  const Millis about = by < std::chrono::seconds(2) ? by : Millis(std::chrono::round<std::chrono::seconds>(by));
  return ": the server's clock jumped " + show_roughly(about) + (step > Millis{0} ? " ahead" : " back");
}

}  // namespace rlock
