// SPDX-License-Identifier: Apache-2.0
// Merges the histories of a lock on several servers. The event log of each server also has attempts that got no quorum. A pure
// function.
#pragma once

#include "lock/past_run.h"

#include <cstddef>
#include <vector>

namespace rlock {

// The runs that a quorum of the servers may have logged, the last one first. `logs`: the runs of each server that answered, in
// any order. `silent`: the number of servers that did not answer.
std::vector<PastRun> merged_runs(const std::vector<const std::vector<PastRun>*>& logs, std::size_t quorum,
                                 std::size_t silent);

}  // namespace rlock
