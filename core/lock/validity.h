// SPDX-License-Identifier: Apache-2.0
// Until when a holder may rely on its lease. Pure functions.
#pragma once

#include "base/clock.h"
#include "base/result.h"

#include <string>

namespace rlock {

// What a lease is counted shorter than its ttl, because clocks run at different rates and because a ttl is rounded to
// milliseconds. Source: the description of Redlock (redis.io, "Distributed Locks with Redis").
constexpr Millis drift_allowed(Millis ttl) { return ttl / 100 + Millis{2}; }

// The end of a lease by the clock of this host: not later than the lock expires on the server. `sent_at`: the time before the
// request was sent.
constexpr Instant valid_until(Instant sent_at, Millis ttl) { return sent_at + ttl - drift_allowed(ttl); }

// Until when a holder may rely on its lease, and how long the lease was when the server granted or renewed it.
struct LeaseTerm {
  Instant until;
  Millis length;
};

// The half-lease rule: a grant that leaves half of the lease or less is too late to begin a job with.
constexpr bool leaves_enough(Instant sent_at, Millis ttl, Instant now)
{
  return valid_until(sent_at, ttl) - now > ttl / 2;
}

// The advice in the error of a lease that is too short for the server.
inline constexpr const char* give_longer_lease = " (give a longer --ttl or --lease)";

// The error of a caller whose grants are repeatedly too late.
inline Error too_slow()
{
  return {ErrorCode::unfit,
          std::string("the server needs longer to answer than half the lease lasts") + give_longer_lease};
}

}  // namespace rlock
