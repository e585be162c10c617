// SPDX-License-Identifier: Apache-2.0
// Whose descriptors are whose: what has FD_CLOEXEC is rlock's own, the rest above stderr was passed
// in by the user for the job.
#pragma once

#include <span>
#include <vector>

namespace rlock {

// Closes all of rlock's own but those in `keep`, so that a process that lives on without exec holds up
// nobody: not the server's connection, not the other end of a socket whose EOF somebody waits for.
// Returns the user's: for the job to inherit, and for the guardian to close as soon as it has.
std::vector<int> close_own_descriptors(std::span<const int> keep);

// The user's, without the three standard streams.
std::vector<int> inherited_descriptors();

}  // namespace rlock
