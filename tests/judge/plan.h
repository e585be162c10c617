// SPDX-License-Identifier: Apache-2.0
// What one rlock of the storm does: drawn from the seed, and nothing else.
#pragma once

#include "base/clock.h"
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

// `faulty`: some runs get a fault of their processes. `forms`: of their jobs; never empty.
RunPlan draw_run(Rng& rng, bool faulty, const std::vector<JobForm>& forms);

// Waiters of one lock that is left in peace, whose order is checked.
RunPlan patient_run(Millis duration);

// What the words to execute are made of.
struct Programs {
  std::string rlock;
  Words server_options;
  std::string job;
  std::string frozen_file;  // for a job of JobForm::frozen
};

// The words to execute. `file`: for the evidence.
Words argv_of(const RunPlan& plan, const Programs& programs, const std::string& file);

}  // namespace rlock::judge
