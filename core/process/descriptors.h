// SPDX-License-Identifier: Apache-2.0
// Tells rlock's own descriptors from the inherited ones: rlock sets FD_CLOEXEC on its own. All others above stderr were
// passed in by the caller of rlock, for the job.
#pragma once

#include <span>
#include <vector>

namespace rlock {

// Closes rlock's own descriptors except `keep`, so that a fork that lives on without exec keeps no connection to the
// server open and no socket whose peer waits for its end. Returns the inherited ones: the job inherits them, and the
// guardian closes them after that.
std::vector<int> close_own_descriptors(std::span<const int> keep);

// The inherited ones, without the three standard streams.
std::vector<int> inherited_descriptors();

}  // namespace rlock
