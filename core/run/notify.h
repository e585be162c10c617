// SPDX-License-Identifier: Apache-2.0
// --notify: a command of the user gets the result of a run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include "process/signals.h"
#include "run/lock_set.h"
#include "run/request.h"

namespace rlock {

struct RunNews {
  // succeeded failed cancelled lost forced timed_out busy replaced unreachable; empty: nothing to tell
  std::string outcome = {};
  std::optional<int> exit_code = std::nullopt;  // nullopt: unknown; the variable is empty then
  Millis duration{0};                           // until now: how long the job ran, or how long the run waited
  std::string message = {};                     // empty: made of the other members
  std::string holder = {};                      // RunReport::holder
};
RunNews news_of(const RunReport& report, Millis duration);

// Runs RunRequest::notify by /bin/sh, for `time_limit` in notify.cpp at most, if there is a command and something to tell. Its
// environment is that of the job, but RLOCK_HELD is as this process inherited it, because the locks are released. `held`: the locks
// that the run had; nullptr: none. `heeded`: see run_in_shell. Calls `failed` with a line when the command fails. Threads: call this
// while the process has one thread.
void notify(const RunRequest& request, const RunContext& context, const LockSet* held, const RunNews& news,
            Signals* heeded, const std::function<void(const std::string&)>& failed);

}  // namespace rlock
