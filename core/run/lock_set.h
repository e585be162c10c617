// SPDX-License-Identifier: Apache-2.0
// All locks of one request, and the job that runs under them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "run/lock_session.h"
#include "run/prepared_job.h"

namespace rlock {

// Each attempt to acquire has a set, and so an owner, of its own: what an earlier attempt could not release is left to its ttl,
// and a late release cannot end a lock that is held now.
// Ownership: `request` and `context` must outlive the set.
// Threads: used from the main thread.
struct LockSet {
  // `path`: of the job's program; nullopt: no job runs under the locks.
  LockSet(const RunRequest& request, const RunContext& context, const std::optional<std::string>& path);
  LockSet(const LockSet&) = delete;  // the prepared job points to the sessions
  LockSet& operator=(const LockSet&) = delete;

  [[nodiscard]] std::vector<HeldLock> held_locks() const;

  // Call this when all locks are held.
  [[nodiscard]] const LockSession& first_to_expire() const;

  std::unique_ptr<LockStore> store;   // nullptr until a session has opened it
  std::vector<LockSession> sessions;  // in the order of acquisition; use the store
  int attempt = 1;                    // the number of this run of the job, of RunRequest::attempts
  std::optional<PreparedJob> prepared_job;
};

}  // namespace rlock
