// SPDX-License-Identifier: Apache-2.0
// The time for which the locks of a job are ours, or are asked for: the locks, and the job that is to run under them.
#pragma once

#include "run/lock_session.h"
#include "run/prepared_job.h"

#include <string>
#include <vector>

namespace rlock {

// Everything it refers to must outlive it. An owner is for one tenure: what an earlier one could not release is left to
// its ttl, for an answer that comes late must not let go of what is held now.
struct LockSet {
  LockSet(const RunRequest& request, const RunContext& context, const std::string& path);
  LockSet(const LockSet&) = delete;  // the preparation has a pointer to it
  LockSet& operator=(const LockSet&) = delete;

  [[nodiscard]] std::vector<HeldLock> locks() const;

  // When all are taken.
  [[nodiscard]] const LockSession& first_to_end() const;  // whose lease does
  [[nodiscard]] std::vector<Instant> leases() const;      // their ends
  [[nodiscard]] Instant taken_at() const;                 // when the last of them was, and so all
  [[nodiscard]] Instant watch_from() const;

  std::vector<LockSession> sessions;  // in the order of taking
  PreparedJob prepared_job;
};

}  // namespace rlock
