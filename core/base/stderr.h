// SPDX-License-Identifier: Apache-2.0
// Writing to stderr without waiting for its reader. The open file description of stderr is shared with the caller and the
// job, so its flags are never changed.
#pragma once

#include <cstddef>
#include <string_view>

namespace rlock {

// Writes what stderr takes at once and returns how many bytes that were: 0 for a full pipe or a stopped terminal. Text
// that can never be written, because stderr is closed or broken, counts as written. Text of up to PIPE_BUF bytes goes
// to a pipe as a whole or not at all. Thread-safe.
std::size_t write_stderr_at_once(std::string_view text);

}  // namespace rlock
