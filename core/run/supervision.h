// SPDX-License-Identifier: Apache-2.0
// The part of `rlock run` while the locks are held: starts the job, watches the leases, stops the job, releases the
// locks.
#pragma once

#include "run/lock_set.h"

namespace rlock {

// Releases nothing before the job is dead and reaped. Stops the watchdogs before that, so that no renewal follows a
// release. The loss of one lock counts as the loss of all. The keeper of Compatibility::flock runs RunRequest::notify itself, and
// never returns.
RunReport supervise(const RunRequest& request, const RunContext& context, LockSet& lock_set);

}  // namespace rlock
