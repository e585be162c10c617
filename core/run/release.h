// SPDX-License-Identifier: Apache-2.0
// Releases the locks of a job or a script, and keeps the history that outlives their event logs.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>
#include "base/clock.h"
#include "base/defaults.h"
#include "base/log.h"
#include "base/result.h"
#include "lock/store.h"
#include "run/lock_set.h"
#include "run/verdict.h"

namespace rlock {

constexpr Millis first_release_pause{50};  // the pause between the first two attempts

struct ReleaseAllOptions {
  Instant give_up;             // when attempts to release end; there is at least one for each lock
  Instant keep_until{};        // the ttl of the locks ends at this time (--min-hold)
  Instant began{};             // when the job began
  bool succeeded = false;      // the job succeeded; the server remembers that if RunRequest::once asks for it
  Instant ended = far_future;  // when the job was over
  bool lease_over = false;     // the job was stopped because a lease ended
  RunResult result = {};       // for the event log
  Millis longest_pause = first_release_pause;  // RetryReleaseOptions::longest_pause
  bool is_announced = false;  // another process releases the lock by its token, so a lock that is gone is not lost
};

// For each lock the answer to its release; nullopt: the lock was still held when the job was over.
using ReleaseFindings = std::vector<std::optional<NotHeld>>;

// Call this when no watchdog renews the locks, because a renewal must not follow a release. Releases `held`, the last acquired first. Logs a
// lock that could not be released; the ttl ends that lock. A lock that is lost gets one attempt, for a short time and without a
// message. Returns after a short pause when a waiter got one of the locks. Call this when the job is reaped, or if it never ran.
ReleaseFindings release_all(const RunRequest& request, const RunContext& context, std::span<LockSession> held,
                            const ReleaseAllOptions& options);

// The locks as verdict_of() needs them. `findings`: what release_all returned for `held`.
std::vector<LockFacts> lock_facts(std::span<LockSession> held, const ReleaseFindings& findings);

// Releases locks under which nothing has run. What the server does not answer is left to the ttl.
void take_back(const RunRequest& request, const RunContext& context, std::span<LockSession> held,
               std::optional<Millis> within = std::nullopt);

// Releases a lock on a server that may not answer at once.

struct RetryReleaseOptions {
  Millis server_timeout;                       // long enough for several attempts
  Instant give_up;                             // when attempts end
  Millis longest_pause = first_release_pause;  // the pauses double up to this
};

// Calls `release` at least once, and again until it succeeds, fails for good or `give_up` has come; calls
// `drop_connection` before each further attempt. An Error is that of an attempt that had its full time, if any had.
Result<Release> retry_release(const Clock& clock, const RetryReleaseOptions& options,
                              const std::function<Result<Release>(const CallLimits&)>& release,
                              const std::function<void()>& drop_connection);

// Call this after the release that ended a run: now and then, and after each failure, keeps the runs for longer than the event log does
// (LockStore::keep_runs), if `history` asks for that. A failure is logged.
void keep_runs(LockStore& store, const LockName& lock, std::optional<Millis> history, bool succeeded,
               Millis server_timeout, const Clock& clock, Rng& rng, const Log& log);

}  // namespace rlock
