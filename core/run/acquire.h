// SPDX-License-Identifier: Apache-2.0
// `rlock acquire`: acquires a lock for its caller, starts a keeper for the lock if there is a process to watch, and
// returns.
#pragma once

#include "base/defaults.h"
#include "base/exit_code.h"
#include "process/script_tree.h"
#include "run/environment.h"
#include "run/run.h"
#include "stores/open.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rlock {

// The keeper releases the lock when this process ends.
struct WatchedProcess {
  pid_t pid;
  int lost_signal = SIGTERM;  // the keeper sends this signal to the process when the lock is lost
  OnLost on_lost = OnLost::stop;
  bool has_pipe = false;  // it opens the pipe that PrintToken gets; then what it starts is protected, too
  // The two for what has the pipe.
  Millis kill_after = default_kill_after;
  Leftovers leftovers = Leftovers::stop;
};

struct AcquireRequest : TakeRequest {
  LockName name;                          // a lock of it in RLOCK_HELD is entered again
  std::optional<WatchedProcess> watched;  // nullopt: one lease, which is not renewed
  // Why the lease is a freeze, which waits before all others and joins no hold of an ancestor; empty: it is none.
  std::string freeze = {};
  std::optional<Instant> ends_at = std::nullopt;  // when the freeze ends, whenever it begins; nullopt: after `ttl`
};

// Called when the lock is held and its keeper, if there is a process to watch, has started. After an Error the lock is
// released, because its caller does not have the token. `pipe`: nullopt: the watched process has none.
using PrintToken =
    std::function<Result<Done>(const HeldLock& lock, std::uint64_t fence, const std::optional<PipeForScript>& pipe)>;

// Returns how the process must end: after success, after a signal, or when the lock is busy, which is logged. Unless the exit
// code is 0, no lock is held. When this process is killed before its caller has the token, the keeper releases the lock, or the
// ttl ends the lock.
// Threads: call this from main, while the process has one thread.
// Errors: those of the store and of `print_token`; ErrorCode::usage: there is no such process to watch, or this process may not
// signal that process; ErrorCode::os: no keeper could be started.
Result<RunEnd> acquire(const AcquireRequest& request, RunContext context, const PrintToken& print_token);

}  // namespace rlock
