// SPDX-License-Identifier: Apache-2.0
// When to renew a lease, and when to call it lost: a pure decision.
#pragma once

#include "base/clock.h"
#include "lock/store.h"

#include <variant>

namespace rlock {

struct RenewalPolicy {
  Millis every;        // between successful renewals
  Millis retry_every;  // after a failed one
  Millis try_for;      // the first attempt, so that a hung server cannot eat the retries
  Millis longest_try;  // later ones grow up to this, so that a server that is only slow is heard
  Millis kill_margin;  // time the job needs to die before the lease does
};

// A third of the ttl between renewals. Retries come so densely that a server that was away for 0.45 ttl from the worst
// moment on (just before a renewal) is asked again before the margin begins.
RenewalPolicy renewal_policy(Millis ttl, Millis kill_margin);

// As the kind of lock needs it. Not `renews`: a fixed lease, which is only checked.
RenewalPolicy renewal_policy(const LockSpec& spec, bool renews, Millis kill_margin);

struct RenewalState {
  Instant valid_until;  // no later than the server's own expiry
  Instant last_kept;    // when the last successful request was sent
  Instant last_try;     // == last_kept unless renewals are failing
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
