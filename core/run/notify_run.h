// SPDX-License-Identifier: Apache-2.0
// Runs the command of RunRequest::notify.
#pragma once

#include "run/lock_set.h"
#include "run/run_end.h"

#include <functional>
#include <string>

namespace rlock {

// Runs the command, if there is a command and a run to tell about. `held`: the locks that the run had; nullptr: none. `duration`:
// how long the job ran, or how long the run waited. `heeded`: see run_in_shell. Calls `failed` with a line when the command
// fails. Threads: call this when the locks are released, while the process has one thread.
void notify_of(const RunRequest& request, const RunContext& context, const LockSet* held, const RunReport& report,
               Millis duration, Signals* heeded, const std::function<void(const std::string&)>& failed);

}  // namespace rlock
