// SPDX-License-Identifier: Apache-2.0
// A command in our place, without any lock.
#pragma once

#include "base/result.h"
#include "process/signals.h"

#include <string>
#include <vector>

namespace rlock {

// Returns only if it cannot be executed: not_found, not_executable. `environment`: NAME=value.
Error exec_command(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                   const Signals& signals);

}  // namespace rlock
