// SPDX-License-Identifier: Apache-2.0
// The part of `rlock run` while the locks are held: starts the job, watches the leases, stops the job, releases the
// locks.
#pragma once

#include "run/lock_set.h"

namespace rlock {

// Releases no lock before the job is dead and reaped. Stops the watchdog before the release, so that no renewal follows it. The
// loss of one lock counts as the loss of all. The successor that Compatibility::flock leaves runs RunRequest::notify itself, and never
// returns.
RunReport supervise(const RunRequest& request, const RunContext& context, LockSet& lock_set);

}  // namespace rlock
