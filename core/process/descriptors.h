// SPDX-License-Identifier: Apache-2.0
// Tells the descriptors that rlock opened from the inherited ones: rlock sets FD_CLOEXEC on each descriptor that it opens. The
// caller of rlock passed all other descriptors above stderr to rlock, for the job.
#pragma once

#include <span>
#include <vector>

namespace rlock {

// Closes the descriptors that rlock opened, except `keep`, so that a fork without exec keeps no connection to the server open and
// no socket whose peer waits for its end. Returns the inherited descriptors: the job inherits them, and then the guardian closes
// them.
std::vector<int> close_own_descriptors(std::span<const int> keep);

// The inherited descriptors, without the three standard streams.
std::vector<int> inherited_descriptors();

// Detaches a process that was just forked and will outlive its caller. Makes a session, so that neither the keys nor the hangup
// of the terminal reach the process. Sets the standard streams to /dev/null and closes the inherited descriptors (those without
// FD_CLOEXEC), so that no reader of a pipe waits for the process. Changes to /, so that no file system stays busy. Keeps the
// descriptors that rlock opened.
void detach();

// Sets the standard streams to /dev/null.
void redirect_streams();

}  // namespace rlock
