// SPDX-License-Identifier: Apache-2.0
// Releases the locks of a job.
#pragma once

#include "run/lock_set.h"
#include "run/outcome.h"

#include <optional>
#include <span>
#include <vector>

namespace rlock {

struct ReleaseAllOptions {
  Instant give_up;          // when trying ends; each lock is tried at least once
  Instant keep_until{};     // the locks stay taken until then, by their ttl
  bool succeeded = false;   // the job did; recorded on the server when RunRequest::once asks for it
  bool lease_over = false;  // the job was stopped because a lease ended
  EndOfRun result = {};     // for the event log
};

// For each lock the answer to its release when it was no longer held.
using ReleaseFindings = std::vector<std::optional<NotHeld>>;

// To be called when the job is reaped, or never ran. First stops all watchdogs, because a renewal must not follow a
// release. Then releases `held`, the last acquired first. Logs a lock that could not be released: the ttl frees it. A
// lock that is lost is tried once, for a short time and without a message. Returns after a short pause when a waiter
// got one of the locks.
ReleaseFindings release_all(const RunRequest& request, const RunContext& context, std::span<LockSession> held,
                            const ReleaseAllOptions& options);

// For run_outcome(). `findings`: as release_all returned them for `held`.
std::vector<LockOutcome> lock_outcomes(std::span<LockSession> held, const ReleaseFindings& findings);

}  // namespace rlock
