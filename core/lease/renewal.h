// SPDX-License-Identifier: Apache-2.0
// Decides when to renew a lease, and when to give the lease up. Pure functions: no network, no clock, no threads.
#pragma once

#include "base/clock.h"
#include "base/defaults.h"
#include "lock/store.h"

#include <algorithm>
#include <variant>

namespace rlock {

struct RenewalPolicy {
  Millis every;        // the time between two successful renewals
  Millis retry_every;  // the time between a failed renewal and the next attempt
  Millis try_for;      // the time limit of the first attempt: a server that hangs leaves time for retries
  Millis longest_try;  // the time limits of later attempts grow up to this, so that a slow server can still answer
  Millis kill_margin;  // the time that the job needs to die before the lease ends
};

// `every` is renewal_period(ttl). Retries are so frequent that a server that comes back within 0.45 ttl gets a request before the
// margin begins, even when the server went away just before a renewal.
RenewalPolicy renewal_policy(Millis ttl, Millis kill_margin);

// The policy for this kind of lock. `renews` false: a fixed lease, which is only checked.
RenewalPolicy renewal_policy(const LockSpec& spec, bool renews, Millis kill_margin);

// The policy until the first renewal of a lease that began with a Handover of `claim`: the lease is renewed at once.
RenewalPolicy confirmation_policy(Millis claim, Millis kill_margin);

// How long before the end of an unconfirmed lease the stop signal is sent.
inline Millis signal_lead(Millis lease, Millis kill_after = default_kill_after)
{
  return std::min(kill_after, lease / 6);
}

struct RenewalState {
  Instant valid_until;  // not later than the lock expires on the server
  Instant last_kept;    // when the last successful request was sent
  Instant last_try;     // when the last request was sent; last_kept unless renewals fail
};

struct Sleep {
  Instant until;
};
struct Renew {
  Instant deadline;
};
struct GiveUp {};
using Step = std::variant<Sleep, Renew, GiveUp>;

Step next_step(const RenewalState& lease, const RenewalPolicy& policy, Instant now);

}  // namespace rlock
