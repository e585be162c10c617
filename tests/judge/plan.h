// SPDX-License-Identifier: Apache-2.0
// What one rlock of the storm does: drawn from the seed, and nothing else.
#pragma once

#include "base/rng.h"
#include "judge/process_fault.h"
#include "judge/records.h"

#include <optional>
#include <string>
#include <vector>

namespace rlock::judge {

struct RunPlan {
  RunRecord record;                // kind, keys, ttl and so on
  Words rlock_options;             // between the verb and the job, without servers
  Words job_options;               // after FILE
  std::optional<FaultPlan> fault;  // of its processes
};

// All locks of the storm, as a server fault may remove them.
Words storm_keys();

// `faulty`: some runs get a fault of their processes.
RunPlan draw_run(Rng& rng, bool faulty);

// Waiters of one lock that is left in peace, whose order is checked.
RunPlan patient_run(Millis duration);

// The words to execute.
Words argv_of(const RunPlan& plan, const std::string& rlock, const Words& server_options, const std::string& job,
              const std::string& file);

}  // namespace rlock::judge
