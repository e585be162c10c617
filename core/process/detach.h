// SPDX-License-Identifier: Apache-2.0
// Detaches a process from its caller.
#pragma once

namespace rlock {

// Detaches a process that was just forked and will outlive its caller. Makes a session, so that neither the keys nor the hangup
// of the terminal reach the process. Sets the standard streams to /dev/null and closes the inherited descriptors (those without
// FD_CLOEXEC), so that no reader of a pipe waits for the process. Changes to /, so that no file system stays busy. Keeps the
// descriptors that rlock opened.
void detach();

// Sets the standard streams to /dev/null.
void redirect_streams();

}  // namespace rlock
