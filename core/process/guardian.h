// SPDX-License-Identifier: Apache-2.0
// The guardian: the process between runner and job (see job.h). The guardian has one thread, and only the descriptors that it
// needs. It blocks every signal that can be blocked, because service managers signal all processes of a service at once.
#pragma once

#include "base/fd.h"
#include "process/inherited_pipe.h"
#include "process/job.h"
#include "process/launch.h"
#include "process/shared_deadline.h"
#include "process/signals.h"

#include <string>

namespace rlock {

// All that the task refers to must outlive the guardian.
struct GuardianTask {
  const JobSpec& spec;
  const Signals& signals;
  SharedDeadline& shared_deadline;
  const InheritedPipe& inherited_pipe;
  Grouping grouping;
  Fd socket;  // the socket to the runner
};

// The message of a guardian whose runner was killed. `still_runs`: a process of the job that KILL has not ended.
std::string runner_killed_text(bool still_runs, bool released);

// Runs the guardian. Call this in the forked child.
[[noreturn]] void run_guardian(GuardianTask task);

}  // namespace rlock
