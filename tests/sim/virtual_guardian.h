// SPDX-License-Identifier: Apache-2.0
// The guardian of a virtual job: the loop of process/guardian.cpp, with a job that is no process.
#pragma once

#include "process/job.h"
#include "sim/virtual_job.h"

namespace rlock::sim {

// In the guardian's fiber, until the job is over. `socket`: to the runner.
void guard(VirtualJob& job, JobSpec spec, SharedDeadline& deadline, Fd socket);

}  // namespace rlock::sim
