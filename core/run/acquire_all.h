// SPDX-License-Identifier: Apache-2.0
// Acquires all locks of a job, or none.
#pragma once

#include "run/lock_set.h"

#include <string>
#include <variant>

namespace rlock {

struct AllAcquired {};
// A lock stayed busy for as long as the request allows.
struct LockBusy {
  std::string display_name;
  Busy last;
};
// Some locks were held, and then one of them was lost or the server went away. All locks are released; another attempt may
// succeed.
struct RetryNeeded {
  std::string why;
};
using AcquireAllResult = std::variant<AllAcquired, AlreadyDone, LockBusy, RetryNeeded, Interrupted>;

// Acquires the locks in their order. While it waits for a lock, it renews the locks that it holds. Prepares the job when only the
// grant of the last lock is missing. After any outcome but AllAcquired the job has not run and all locks are released.
// Threads: call this while the process has one thread; the process has one thread again afterwards.
Result<AcquireAllResult> acquire_all(const RunRequest& request, const RunContext& context, const WaitPolicy& policy,
                                     LockSet& lock_set);

}  // namespace rlock
