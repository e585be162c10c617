// SPDX-License-Identifier: Apache-2.0
// RunRequest::notify.
#pragma once

#include "run/lock_set.h"
#include "run/run_end.h"

#include <functional>
#include <string>

namespace rlock {

// Runs the command, if there is one and a run to tell about. `held`: the locks that the run had; nullptr: none. `duration`: of the
// job, or of the wait. `heeded`: as run_in_shell
// has it. `failed`: takes a line when the command fails. To be called when the locks are released, while the process
// has one thread.
void notify_of(const RunRequest& request, const RunContext& context, const LockSet* held, const RunReport& report,
               Millis duration, Signals* heeded, const std::function<void(const std::string&)>& failed);

}  // namespace rlock
