// SPDX-License-Identifier: Apache-2.0
// The output of acquire --export: a shell that evaluates it gets the variables that a job finds in its environment.
#pragma once

#include "cli/options/environment.h"
#include "run/environment.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace rlock::cli {

// The text as one word of a POSIX shell: "'it'\''s'".
std::string shell_quoted(std::string_view text);

// The same for people who copy the word, on one line and without control characters: quoted only where a shell needs that. A text
// with control characters or invalid UTF-8 is written as $'two\nlines', which bash, ksh and zsh read.
std::string copied_word(std::string_view text);

// Lines `export NAME='value'` for one lock. RLOCK_HELD is the environment's and this lock, which replaces an earlier one under
// its key unless it is nested in it. RLOCK_SERVER is left out where the environment's has the same servers and a password,
// because the exported URL has none. `unset NAME` for a variable that would come before RLOCK_PASSWORD_FILE.
std::string export_lines(const JobLocks& lock, std::uint64_t fence, const Environment& environment);

}  // namespace rlock::cli
