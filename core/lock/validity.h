// SPDX-License-Identifier: Apache-2.0
// Until when a lease may be relied on.
#pragma once

#include "base/clock.h"

namespace rlock {

// No later than the server's own expiry: counted from before the request was sent, less 1 % of the ttl and 2 ms for
// clocks that do not run alike (the allowance of the Redlock description).
constexpr Instant valid_until(Instant sent_at, Millis ttl)
{
  return sent_at + ttl - (ttl / 100 + Millis{2});
}

}  // namespace rlock
