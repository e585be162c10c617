// SPDX-License-Identifier: Apache-2.0
// Compares the server's clock with the clock of this host. Pure functions.
//
// A ttl runs out by the server's wall clock, which an administrator, NTP or a paused machine may set. rlock counts the
// lease by the clock of its host. Each answer carries the server's time, so two renewals show how the clocks differ.
#pragma once

#include "base/clock_sample.h"

#include <string>

namespace rlock {

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
