// SPDX-License-Identifier: Apache-2.0
// One key and its server: what ttl, wait, history and forget begin with.
// The past runs of locks that a verb shows.
#pragma once

#include "cli/options/lock.h"
#include "cli/options/server.h"
#include "cli/options/verb.h"
#include "lock/abilities.h"

#include <vector>

namespace rlock::cli {

struct RawOneLock {
  RawKeys keys;
  RawServer server;
};

struct OneLock {
  LockName name;
  OpenedStore opened;
};

// The lock that the options and the operands of `call` name, and its store.
Result<OneLock> open_lock(const RawOneLock& raw, const Call& call);

// Fills LockState::runs. They stay empty where the engine keeps no history, or the user may not read it.
Result<Done> add_runs(const OpenedStore& opened, LogPart part, std::vector<LockState>& states);
Result<Done> add_runs(const OpenedStore& opened, LogPart part, LockState& state);

}  // namespace rlock::cli
