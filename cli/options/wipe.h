// SPDX-License-Identifier: Apache-2.0
// No secret in `ps`.
#pragma once

#include <span>

namespace rlock::cli {

// Writes '*' over user and password of every URL in argv, in place: that memory is what ps(1)
// shows. Copy the words first, the job's among them: it gets the copies.
void wipe_passwords(std::span<char* const> argv);

}  // namespace rlock::cli
