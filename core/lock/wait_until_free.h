// SPDX-License-Identifier: Apache-2.0
// Waiting until a lock is free, without taking it.
#pragma once

#include "base/rng.h"
#include "lock/store.h"

#include <optional>

namespace rlock {

enum class WaitResult { free, time_over, interrupted };

// Free: it has room, and nobody stands in line for that. Leaves no trace on the server.
// `until` missing: for ever. Errors as wait_and_acquire's: a server that goes away meanwhile is asked again.
Result<WaitResult> wait_until_free(LockStore& store, const LockName& name, std::optional<Instant> until,
                                   Millis server_timeout, const Clock& clock, Rng& rng, StopToken stop);

}  // namespace rlock
