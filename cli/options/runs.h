// SPDX-License-Identifier: Apache-2.0
// The past runs of locks that a verb shows.
#pragma once

#include "cli/options/server.h"
#include "lock/abilities.h"

#include <vector>

namespace rlock::cli {

// Fills LockState::runs. They stay empty where the engine keeps no history, or the user may not read it.
Result<Done> add_runs(const OpenedStore& opened, LogPart part, std::vector<LockState>& states);
Result<Done> add_runs(const OpenedStore& opened, LogPart part, LockState& state);

}  // namespace rlock::cli
