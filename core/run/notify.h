// SPDX-License-Identifier: Apache-2.0
// --notify: a command of the user that learns what became of a run.
#pragma once

#include "process/signals.h"
#include "run/environment.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rlock {

// The environment of the command, without what RunNews tells. The variables of the job, but RLOCK_HELD as it was inherited,
// because the command runs after the release. `fence`: 0: unknown.
std::vector<std::string> notify_environment(const std::vector<std::string>& inherited, const JobLocks& locks,
                                            std::uint64_t fence);
// The same of a run that got no lock.
std::vector<std::string> notify_environment(const std::vector<std::string>& inherited, const LockName& wanted,
                                            const JobServer& server);

struct RunNews {
  std::string outcome;           // succeeded failed lost forced timed_out busy replaced unreachable
  std::optional<int> exit_code;  // nullopt: unknown; the variable is empty then
  Millis duration{0};
  std::string message;  // empty: made of the rest
};

// Runs `command` by /bin/sh for half a minute at most. `failed` takes a line when the command fails. To be called while the
// process has one thread, after the release. `heeded`: as run_in_shell has it.
void notify(const std::string& command, std::vector<std::string> environment, const RunNews& news, const Clock& clock,
            const Signals& inherited, Signals* heeded, const std::function<void(const std::string&)>& failed);

}  // namespace rlock
