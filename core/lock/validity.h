// SPDX-License-Identifier: Apache-2.0
// Until when a lease may be relied on.
#pragma once

#include "base/clock.h"
#include "base/result.h"

namespace rlock {

// Of clocks that do not run alike, and of the milliseconds that a ttl is rounded to: the allowance of the Redlock
// description.
constexpr Millis drift_allowed(Millis ttl) { return ttl / 100 + Millis{2}; }

// No later than the server's own expiry: counted from before the request was sent, less what
// clocks may disagree.
constexpr Instant valid_until(Instant sent_at, Millis ttl) { return sent_at + ttl - drift_allowed(ttl); }

// Whether a grant leaves more than half the lease: less is too little to begin with.
constexpr bool leaves_enough(Instant sent_at, Millis ttl, Instant now)
{
  return valid_until(sent_at, ttl) - now > ttl / 2;
}

inline Error too_slow()
{
  return {ErrorCode::unfit,
          "the server needs longer to answer than half the lease lasts (give a longer --ttl or --lease)"};
}

}  // namespace rlock
