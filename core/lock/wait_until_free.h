// SPDX-License-Identifier: Apache-2.0
// Waits until a lock is free, without acquiring it.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "base/stop.h"
#include "lock/waiting.h"

namespace rlock {

enum class WaitResult { free, time_over, interrupted };

// Waits until the lock has room and an empty queue. Changes nothing on the server. Errors: those of wait_and_acquire; a server
// that goes away later is asked again.
Result<WaitResult> wait_until_free(LockStore& store, const LockName& name, const WaitPolicy& policy, const Clock& clock,
                                   Rng& rng, StopToken stop, ServerObserver& observer);

}  // namespace rlock
