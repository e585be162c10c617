// SPDX-License-Identifier: Apache-2.0
// One history of a lock from those of several servers. Each has an event log of its own, which also has attempts that got no
// quorum. A pure function.
#pragma once

#include "lock/past_run.h"

#include <cstddef>
#include <vector>

namespace rlock {

// The runs that `quorum` of the servers may have logged, the last one first. `logs`: of the servers that answered, whose runs stand
// in any order; `silent`: how many did not answer.
std::vector<PastRun> merged_runs(const std::vector<const std::vector<PastRun>*>& logs, std::size_t quorum,
                                 std::size_t silent);

}  // namespace rlock
