// SPDX-License-Identifier: Apache-2.0
// Until when a holder may rely on its lease. Pure functions.
#pragma once

#include "base/clock.h"
#include "base/result.h"

namespace rlock {

// For clocks that run at different rates, and for the rounding of a ttl to milliseconds: the allowance of the Redlock
// description.
constexpr Millis drift_allowed(Millis ttl) { return ttl / 100 + Millis{2}; }

// Not later than the server's own expiry. `sent_at` was read before the request was sent.
constexpr Instant valid_until(Instant sent_at, Millis ttl) { return sent_at + ttl - drift_allowed(ttl); }

// How long a holder may rely on its lease, and how long the lease was when it was granted or renewed.
struct LeaseTerm {
  Instant until;
  Millis length;
};

// The half-lease rule: a grant that leaves half of the lease or less is too late to begin a job with.
constexpr bool leaves_enough(Instant sent_at, Millis ttl, Instant now)
{
  return valid_until(sent_at, ttl) - now > ttl / 2;
}

// The error of a caller whose grants are repeatedly too late.
inline Error too_slow()
{
  return {ErrorCode::unfit,
          "the server needs longer to answer than half the lease lasts (give a longer --ttl or --lease)"};
}

}  // namespace rlock
