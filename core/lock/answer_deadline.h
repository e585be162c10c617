// SPDX-License-Identifier: Apache-2.0
// By when a waiter needs an answer of the store. Pure functions and their constants.
#pragma once

#include "base/clock.h"

#include <algorithm>
#include <optional>

namespace rlock {

// Giving a lock back, or leaving a queue, on the way out: a server that does not answer by then is left to the ttl.
constexpr Millis give_back_timeout{500};

// The least time for an answer, however little of the wait is left.
constexpr Millis least_answer_time{40};

// `until`: the end of the wait, once the server has answered; before that missing, because the first answer gets all of
// the server timeout.
inline Instant answer_deadline(Instant now, Millis server_timeout, std::optional<Instant> until)
{
  const Instant full = now + server_timeout;
  return until ? std::clamp(*until, std::min(now + least_answer_time, full), full) : full;
}

}  // namespace rlock
