// SPDX-License-Identifier: Apache-2.0
// The deadline of a waiter's request. Pure functions and their constants.
#pragma once

#include "base/clock.h"

#include <algorithm>
#include <optional>

namespace rlock {

// How long a waiter that ends tries to give its lock back or to leave its queue. After that the ttl does it.
constexpr Millis give_back_timeout{500};

// The least time for an answer, however little of the wait is left.
constexpr Millis least_answer_time{40};

// The deadline of a request that is sent now. `until`: the end of the wait; nullopt: the server has not answered yet, so the
// request gets the whole server timeout.
inline Instant answer_deadline(Instant now, Millis server_timeout, std::optional<Instant> until)
{
  const Instant full = now + server_timeout;
  return until ? std::clamp(*until, std::min(now + least_answer_time, full), full) : full;
}

}  // namespace rlock
