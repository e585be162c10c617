// SPDX-License-Identifier: Apache-2.0
// The last act of a tenure: the release.
#pragma once

#include "runner/supervision.h"

#include <optional>

namespace rlock {

// To be called when the job is reaped and the watchdog stopped. Tries again for as long as one answer may take; when
// the server stays away says so, and the ttl does it. `succeeded`: of the job, for `rlock once`. What the lock turned out to be when it was not ours
// any more.
std::optional<NotOurs> let_go(const RunRequest& request, const World& world, const Tenure& tenure,
                               bool succeeded);

}  // namespace rlock
