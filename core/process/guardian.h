// SPDX-License-Identifier: Apache-2.0
// The process between runner and job (see job.h). One thread, no descriptor but its own, and deaf
// to every signal that can be blocked: service managers signal all of a service's processes at
// once.
#pragma once

#include "base/fd.h"
#include "process/inherited_pipe.h"
#include "process/job.h"
#include "process/launch.h"
#include "process/shared_deadline.h"
#include "process/signals.h"

namespace rlock {

struct GuardianTask {
  const JobSpec& spec;
  const Signals& signals;
  SharedDeadline& shared_deadline;
  const InheritedPipe& inherited_pipe;
  Grouping grouping;
  Fd socket;
};

// What the guardian does from its fork to its end.
[[noreturn]] void run_guardian(GuardianTask task);

}  // namespace rlock
