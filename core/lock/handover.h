// SPDX-License-Identifier: Apache-2.0
// Whether a job may begin on the message that hands its lock over, before the server is asked. Pure functions.
#pragma once

#include "lock/lease_budget.h"
#include "lock/listener.h"

#include <chrono>
#include <optional>

namespace rlock {

// When the lock was handed over, by the clock of this host, or a moment earlier. The server's clock read `server_time` when the
// server answered a request that was sent at `asked_at`; the message has the server's time as well. So the age of the message is
// known, except for that round trip and the drift of the clocks since then.
//
// nullopt: the waiter must ask the server first, because the message is older than the answer, leaves too little of its lease,
// or is from the future (the server's clock was set). A clock that is set ahead by no more than the delay of the message goes
// unnoticed.
inline std::optional<Instant> handed_over_at(const Handover& handover, Instant asked_at,
                                             std::chrono::microseconds server_time, Instant now)
{
  const auto between = handover.at - server_time;
  const Instant at = asked_at + between - drift_allowed(std::chrono::ceil<Millis>(between));
  const bool may_begin =
      between.count() > 0 && at <= now && LeaseBudget({.from = at, .length = handover.lease}).may_begin(now);
  return may_begin ? std::optional(at) : std::nullopt;
}

}  // namespace rlock
