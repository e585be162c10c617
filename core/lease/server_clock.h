// SPDX-License-Identifier: Apache-2.0
// How the server's clock goes against ours: pure decisions. A ttl runs out by the server's wall clock, which its
// administrator, NTP or a paused machine may set; we count by our own. What the two disagree upon shows from one renewal
// to the next, in the time that the server tells with each answer.
#pragma once

#include "base/clock_sample.h"

#include <chrono>
#include <string>

namespace rlock {

// How much more time has passed for the server than for us since `before`; less than 0: it went back. 0 as long as the
// time that the answers took can explain it.
Millis clock_step(const ClockSample& before, const ClockSample& now);

// What a lease of `ttl` may be shorter than we count, beyond what is always allowed for, should the server's clock go
// ahead again as it did since `before`. A third of the ttl at most: a single step, which a renewal has mended, costs no job.
Millis lease_reduction(const ClockSample& before, const ClockSample& now, Millis ttl);

// ": the server's clock went 31s ahead of ours"; empty where that is within what is allowed for with that ttl.
std::string clock_step_text(Millis ahead, Millis ttl);

}  // namespace rlock
