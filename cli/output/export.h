// SPDX-License-Identifier: Apache-2.0
// What a shell evaluates to have a lock in its environment, under the names that a job finds there.
#pragma once

#include "cli/options/environment.h"
#include "run/environment.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace rlock::cli {

// "'it'\''s'": one word to every POSIX shell, byte for byte.
std::string shell_quoted(std::string_view text);

// A line `export NAME='value'` each, for one lock. RLOCK_HELD is the environment's and this lock, which takes the place of
// an earlier one under its key unless it is nested in it. RLOCK_SERVER is left out where the environment has it already, with a password that we would take
// away.
std::string export_lines(const JobLocks& lock, std::uint64_t fence, const Environment& environment);

}  // namespace rlock::cli
