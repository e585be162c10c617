// SPDX-License-Identifier: Apache-2.0
// The release in place of a runner that was killed.
#pragma once

#include "run/lock_session.h"

#include <span>

namespace rlock {

// To be called in the guardian, which is a fork of the runner, when the job is dead. Connects anew, because the
// runner's connections are closed there. A success is not remembered for RunRequest::once; --min-hold counts from
// `started`. Tries for as long as one answer may take. False: a lock was not held any more or could not be released.
bool release_for_runner(const RunRequest& request, const RunContext& context, std::span<const LockSession> taken,
                        Instant started);

}  // namespace rlock
