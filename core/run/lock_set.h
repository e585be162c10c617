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
struct Tenure {
  Tenure(const RunRequest& request, const World& world, const std::string& path);
  Tenure(const Tenure&) = delete;  // the preparation has a pointer to it
  Tenure& operator=(const Tenure&) = delete;

  [[nodiscard]] std::vector<HeldLock> locks() const;

  // When all are taken.
  [[nodiscard]] const Holding& first_to_end() const;  // whose lease does
  [[nodiscard]] std::vector<Instant> leases() const;  // their ends
  [[nodiscard]] Instant taken_at() const;             // when the last of them was, and so all
  [[nodiscard]] Instant watch_from() const;

  std::vector<Holding> holdings;  // in the order of taking
  Preparation preparation;
};

}  // namespace rlock
