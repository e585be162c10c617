// SPDX-License-Identifier: Apache-2.0
// --notify: runs a command of the user that gets the result of a run.
#pragma once

#include "process/signals.h"
#include "run/environment.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rlock {

// The environment of the command, without the variables of RunNews: the variables of the job, but RLOCK_HELD as this process
// inherited it, because the command runs after the release. `fence`: 0: unknown.
std::vector<std::string> notify_environment(const std::vector<std::string>& inherited, const JobLocks& locks,
                                            std::uint64_t fence);
// The same for a run that got no lock.
std::vector<std::string> notify_environment(const std::vector<std::string>& inherited, const LockName& wanted,
                                            const JobServer& server);

struct RunNews {
  std::string outcome;           // succeeded failed lost forced timed_out busy replaced unreachable
  std::optional<int> exit_code;  // nullopt: unknown; the variable is empty then
  Millis duration{0};
  std::string message;  // empty: made of the other members
};

// Runs `command` by /bin/sh, for the time limit of notify.cpp at most. Calls `failed` with a line when the command fails.
// `heeded`: see run_in_shell. Threads: call this while the process has one thread, after the release.
void notify(const std::string& command, std::vector<std::string> environment, const RunNews& news, const Clock& clock,
            const Signals& inherited, Signals* heeded, const std::function<void(const std::string&)>& failed);

}  // namespace rlock
