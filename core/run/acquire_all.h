// SPDX-License-Identifier: Apache-2.0
// Acquires all locks of a job, or none.
#pragma once

#include <string>
#include <variant>
#include "lock/waiting.h"
#include "run/lock_set.h"

namespace rlock {

struct AllAcquired {
  bool waited = false;  // another client was in the way of one of the locks
};
// A lock stayed busy for as long as the request allows.
struct LockBusy {
  std::string display_name;
  Busy last;
  bool waits_for_itself;
};
// Some locks were held, and then one of them was lost or the server went away. All locks are released; another attempt may
// succeed.
struct RetryNeeded {
  std::string why;
  bool was_in_line = false;  // WaitPolicy::was_in_line of that attempt
};
using AcquireAllResult = std::variant<AllAcquired, AlreadyDone, LockBusy, RetryNeeded, Interrupted>;

// Acquires the locks in their order. While it waits for a lock, it renews the locks that it holds. Prepares the job, if there is
// one, when only the grant of the last lock is missing. After any outcome but AllAcquired the job has not run and all locks are
// released. Interrupted: `stop` was requested. Several locks for a script have one token: ErrorCode::usage: an outer run holds one
// of them.
// Threads: call this while the process has one thread; the process has one thread again afterwards.
Result<AcquireAllResult> acquire_all(const RunRequest& request, const RunContext& context, const WaitPolicy& policy,
                                     StopToken stop, LockSet& lock_set);

// Whether another attempt may follow this error after RetryNeeded, because the server was there before: the server may come back, and
// the time to wait is not over.
bool may_come_back(const Error& error, const WaitPolicy& policy, Instant now);

// Before the next attempt, for a random time, because several callers may have failed at the same time.
Wake pause_between_attempts(const RunContext& context, StopToken stop);

// Why the lock was not got, for people: a newer run, or the holder.
std::string busy_line(const RunRequest& request, const LockBusy& busy);

// Logs that the lock is busy, and returns how the process must end.
RunEnd report_busy(const RunRequest& request, const LockBusy& busy, const Log& log);

}  // namespace rlock
