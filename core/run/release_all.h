// SPDX-License-Identifier: Apache-2.0
// The last act of a tenure: the release.
#pragma once

#include "run/lock_set.h"
#include "run/outcome.h"

#include <optional>
#include <span>
#include <vector>

namespace rlock {

struct ReleaseAllOptions {
  Instant give_up;          // when trying ends; everything is tried once at least
  Instant keep_until{};     // the locks stay taken until then, by their ttl
  bool succeeded = false;   // the job did, which is to be remembered if the request says so
  bool lease_over = false;  // the job was stopped because a lease ended
};

// To be called when the job is reaped, or never ran. Ends all watchdogs, for a renewal must not follow a release. Then
// lets go of what is taken, the last taken first; when the server stays away says so, and the ttl does it. A lock that is
// lost is tried once, for a quarter of a second and without a word. What each lock turned out to be when it was not ours
// any more, in the order of `taken`. Returns 3 ms later where a waiter got the lock.
std::vector<std::optional<NotHeld>> release_all(const RunRequest& request, const RunContext& context,
                                                std::span<LockSession> taken, const ReleaseAllOptions& release_options);

// What became of each lock, for the lease_event. `found` as let_go returns it.
std::vector<LockOutcome> lock_outcomes(std::span<LockSession> taken, const std::vector<std::optional<NotHeld>>& found);

}  // namespace rlock
