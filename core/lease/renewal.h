// SPDX-License-Identifier: Apache-2.0
// Decides when to renew a lease, and when to give the lease up. Pure functions: no network, no clock, no threads.
#pragma once

#include <string>
#include <variant>
#include "base/clock.h"
#include "base/defaults.h"
#include "lock/lease_budget.h"
#include "lock/lock_kind.h"

namespace rlock {

struct RenewalPolicy {
  Millis every;        // between successful renewals
  Millis retry_every;  // after a failed one
  Millis try_for;      // limit of the first attempt: a server that hangs leaves time for retries
  Millis longest_try;  // limit of later attempts, which grow up to it: a slow server can still answer
  Millis kill_after;   // LeaseBudget::signal_at: then the lease is given up
};

// For a lease of that length: `every` is renewal_period(lease). Retries are so frequent that a server that comes back within 0.45 of it is asked again
// before the margin begins, even when it went away just before a renewal.
RenewalPolicy renewal_policy(Millis lease, Millis kill_after);

// The policy for this kind of lock. `renews` false: a fixed lease, which is only checked.
RenewalPolicy renewal_policy(Millis lease, const LockKind& kind, bool renews, Millis kill_after);

// Until the first renewal of a lease that began with a Handover of `claim`: it is renewed at once.
RenewalPolicy confirmation_policy(Millis claim, Millis kill_after);

struct RenewalState {
  LeaseBudget lease;
  Instant last_kept;  // when the last successful request was sent
  Instant last_try;   // equal to last_kept unless renewals fail
};

struct Sleep {
  Instant until;
};
struct Renew {
  Instant deadline;
};
struct GiveUp {};
using Step = std::variant<Sleep, Renew, GiveUp>;

Step next_step(const RenewalState& state, const RenewalPolicy& policy, Instant now);

// Compares the server's clock with the clock of this host. Pure functions.
//
// A ttl runs out by the server's wall clock, which an administrator, NTP or a paused machine may set. rlock counts the
// lease by the clock of its host. Each answer carries the server's time, so two renewals show how the clocks differ.

// How much more time passed on the server than on this host since `before`; negative: the server's clock went back. 0
// as long as the round trips can explain the difference.
Millis clock_step(const ClockSample& before, const ClockSample& now);

// How much shorter a lease of `ttl` must be counted, beyond drift_allowed, in case the server's clock steps ahead again
// as it did since `before`. At most renewal_period(ttl), because the job survives a single step that a renewal has
// covered.
Millis lease_reduction(const ClockSample& before, const ClockSample& now, Millis ttl);

// ": the server's clock jumped 31s ahead"; empty for a step within drift_allowed(ttl).
std::string clock_step_text(Millis step, Millis ttl);

}  // namespace rlock
