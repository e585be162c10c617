// SPDX-License-Identifier: Apache-2.0
// Removes passwords from the command line that ps(1) shows.
#pragma once

#include <span>

namespace rlock::cli {

// Writes '*' over user and password of every URL in argv, in place, because ps(1) reads that memory. Copy the words before,
// also those of the job, which needs them unchanged.
void wipe_passwords(std::span<char* const> argv);

}  // namespace rlock::cli
