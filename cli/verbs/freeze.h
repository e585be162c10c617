// SPDX-License-Identifier: Apache-2.0
// A freeze: a lease that no process renews, under which no job starts. What rlock freeze, rlock thaw and rlock watch share.
#pragma once

#include "cli/verbs/ask.h"
#include "lock/store.h"
#include "run/acquire.h"

#include <functional>
#include <string>

namespace rlock::cli {

// The freeze of a lock, as the server has it now, for `reason`. `wanted` says how long it lasts (ttl); of its kind, the default means
// that which the lock has. ErrorCode::usage: such a lock cannot be frozen.
Result<RunRequest> freeze_of_lock(const RunRequest& wanted, const std::string& reason, const LockState& about);

// Waits first in line, and calls `frozen` when the freeze has taken effect. Returns as acquire() does.
Result<RunEnd> freeze(const RunRequest& request, const RunContext& context, const std::function<void()>& frozen);

// "stock is frozen by ann as root@web1 until 14:05 +01:00: moving the database", of a freeze that takes effect now.
std::string frozen_now(const RunRequest& request);

// Ends the freeze that `state` shows, and no other hold. `by`: who, for the event log. False: the freeze was over.
Result<bool> thaw(const LockState& state, const std::string& by, const OpenedStore& opened);

}  // namespace rlock::cli
