// SPDX-License-Identifier: Apache-2.0
// `rlock run`: acquires the locks, runs the job, watches the leases, stops the job, releases the locks.
#pragma once

#include "run/request.h"

namespace rlock {

// Runs the job under its locks. Logs why, if the exit code is not the job's. Afterwards no process of the job is left but daemons
// (process/job.h) and the processes that `leftovers` allows; what is left on the server ends with its ttl.
// Threads: call this from main, while the process has one thread.
RunEnd run(const RunRequest& request, RunContext context);

}  // namespace rlock
