// SPDX-License-Identifier: Apache-2.0
// AcquireAllResult all the locks of a job, or none.
#pragma once

#include "run/lock_set.h"

#include <string>
#include <variant>

namespace rlock {

struct AllTaken {};
struct LockBusy {
  std::string wanted;
  Busy last;
};  // for people, which; for as long as we were told to wait
struct RetryNeeded {
  std::string why;
};  // some were ours, and one was lost before all were, or the server went away
using AcquireAllResult = std::variant<AllTaken, AlreadyDone, LockBusy, RetryNeeded, Interrupted>;

// One after the other, in their order; who has the first does not starve for the last, for it keeps what it has. Makes the
// job ready when nothing but its turn is missing. Whatever else the outcome is than AllTaken, nothing was run and what was
// taken is released. To be called while the process has one thread, which it has again afterwards.
Result<AcquireAllResult> acquire_all(const RunRequest& request, const RunContext& context, const WaitPolicy& policy,
                                     LockSet& lock_set);

}  // namespace rlock
