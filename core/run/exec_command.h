// SPDX-License-Identifier: Apache-2.0
// Replaces this process by a command that runs without a lock.
#pragma once

#include "base/result.h"
#include "process/signals.h"

#include <string>
#include <vector>

namespace rlock {

// Returns only when the command cannot be executed. `environment`: NAME=value. Errors: ErrorCode::not_found, not_executable.
Error exec_command(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                   const Signals& signals);

}  // namespace rlock
