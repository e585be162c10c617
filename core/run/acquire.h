// SPDX-License-Identifier: Apache-2.0
// `rlock acquire` and `rlock freeze`: take a lock for the caller, leave a keeper of the lock if there is a process to watch, and
// return.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include "process/script_tree.h"
#include "run/environment.h"
#include "run/request.h"

namespace rlock {

struct TakenLock {
  HeldLock lock;
  std::uint64_t fence;
};

// Called when the locks are held and their keeper, if there is a process to watch, has started. After an Error the locks are
// released, because their caller does not have the token. `locks`: at least one, all with the same token. `pipe`: nullopt: the
// watched process has none.
using PrintToken =
    std::function<Result<Done>(std::span<const TakenLock> locks, const std::optional<PipeForScript>& pipe)>;

// `request`: its locks are for a script, or for no process. If it asks for one lock, and RLOCK_HELD names that lock, the lock is entered
// again. If it asks for several, an outer run may hold none of them, because the hold of that run has another token.
// Returns how the process must end: after success, after a signal, or when the lock is busy, which is logged. Unless the exit
// code is 0, no lock is held. When this process is killed before its caller has the token, the keeper releases the lock, or the
// ttl ends the lock.
// Threads: call this from main, while the process has one thread.
// Errors: those of the store and of `print_token`; ErrorCode::usage: there is no such process to watch, or this process may not
// signal that process, or an outer run holds one of several locks; ErrorCode::os: no keeper could be started.
Result<RunEnd> acquire(const RunRequest& request, RunContext context, const PrintToken& print_token);

}  // namespace rlock
