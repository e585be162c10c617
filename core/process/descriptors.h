// SPDX-License-Identifier: Apache-2.0
// Tells the descriptors that rlock opened from the inherited ones: rlock sets FD_CLOEXEC on each descriptor that it opens. The
// caller of rlock passed all other descriptors above stderr to rlock, for the job.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace rlock {

// Closes the descriptors that rlock opened, except `keep`, so that a fork without exec keeps no connection to the server open and
// no socket whose peer waits for its end. Returns the inherited descriptors: the job inherits them, and then the guardian closes
// them.
std::vector<int> close_own_descriptors(std::span<const int> keep);

// The inherited descriptors, without the three standard streams.
std::vector<int> inherited_descriptors();

// Lets this process open so many descriptors: raises its soft limit as far as the hard limit allows (getrlimit(2)). Returns the soft
// limit after that.
// Threads: call this while the process has one thread.
std::size_t raise_descriptor_limit(std::size_t needed);

// Gives a child process the limit that the caller of rlock had: a program that uses select(2) must not get a higher descriptor than
// it can use. Async-signal-safe; for the time between fork and execve.
void restore_descriptor_limit();

// Detaches a process that was just forked and will outlive its caller. Makes a session, so that neither the keys nor the hangup
// of the terminal reach the process. Sets the standard streams to /dev/null and closes the inherited descriptors (those without
// FD_CLOEXEC), so that no reader of a pipe waits for the process. Changes to /, so that no file system stays busy. Keeps the
// descriptors that rlock opened.
void detach();

// Sets the standard streams to /dev/null.
void redirect_streams();

}  // namespace rlock
