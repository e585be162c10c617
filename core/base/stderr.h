// SPDX-License-Identifier: Apache-2.0
// Writes to stderr without waiting for its reader. rlock shares the open file description of stderr with its caller and
// the job, so its flags are never changed.
#pragma once

#include <cstddef>
#include <string_view>

namespace rlock {

// Writes as much as stderr takes at once and returns the number of bytes: 0 for a full pipe or a stopped terminal. Text
// that can never be written, because stderr is closed or broken, counts as written. Up to PIPE_BUF bytes go to a pipe
// as a whole or not at all. Thread-safe.
std::size_t write_stderr_at_once(std::string_view text);

}  // namespace rlock
