// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rlock {

// Detaches a process that was just forked and will outlive its caller. Makes a session of its own, so that neither the
// keys nor the hangup of the terminal reach it. Sets the standard streams to /dev/null and closes the inherited
// descriptors (without FD_CLOEXEC), so that no reader of a pipe waits for this process. Changes to /, so that no file
// system stays busy. Keeps rlock's own descriptors.
void detach();

// Sets the standard streams to /dev/null.
void redirect_streams();

}  // namespace rlock
