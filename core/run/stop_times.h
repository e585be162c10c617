// SPDX-License-Identifier: Apache-2.0
// When a job, or a script with its processes, is stopped because of its lease.
#pragma once

#include "base/defaults.h"
#include "lock/lease_budget.h"
#include "process/shared_deadline.h"

namespace rlock {

// When each step against a job, or against a script, is due unless its lease is renewed.
inline StopTimes stop_times(const LeaseBudget& lease, Millis kill_after)
{
  return {.signal = lease.signal_at(kill_after),
          .kill = lease.kill_at(),
          .last_resort = lease.last_resort_at(),
          .lease_end = lease.valid_until()};
}

// --kill-after is shortened to this, so that the job of a lost lock is dead within a second on a busy machine.
inline constexpr Millis kill_after_loss{750};

}  // namespace rlock
