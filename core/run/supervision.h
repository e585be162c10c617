// SPDX-License-Identifier: Apache-2.0
// The part of the story during which the locks are ours: start the job, watch all of them, stop, release.
#pragma once

#include "run/lock_set.h"

namespace rlock {

// Nothing is released before the job is dead and reaped, and the watchdogs are stopped before that: a renewal
// can never follow a release. To lose one lock is to lose all.
RunEnd supervise(const RunRequest& request, const RunContext& context, LockSet& lock_set);

}  // namespace rlock
