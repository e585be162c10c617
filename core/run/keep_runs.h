// SPDX-License-Identifier: Apache-2.0
// The history of a lock that outlives its event log.
#pragma once

#include <optional>
#include "base/clock.h"
#include "base/log.h"
#include "lock/store.h"

namespace rlock {

// Call this after the release that ended a run: now and then, and after each failure, keeps the runs for longer than the event log does
// (LockStore::keep_runs), if `history` asks for that. A failure is logged.
void keep_runs(LockStore& store, const LockName& lock, std::optional<Millis> history, bool succeeded,
               Millis server_timeout, const Clock& clock, Rng& rng, const Log& log);

}  // namespace rlock
