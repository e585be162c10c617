// SPDX-License-Identifier: Apache-2.0
// rlock acquire: its options, and the AcquireRequest that is made of them.
// The output of acquire --export: a shell that evaluates it gets the variables that a job finds in its environment.
#pragma once

#include "cli/options/environment.h"
#include "cli/options/lock.h"
#include "cli/options/run.h"
#include "cli/options/server.h"
#include "run/acquire.h"
#include "run/environment.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rlock::cli {

struct RawAcquire {
  RawKeys keys;
  RawServer server;
  RawWaitOptions wait_options;
  RawMode mode;
  Text shards;
  Text busy_code;
  Text pid;
  Text ttl;
  Text signal;
  Text on_lost;
  Text lease;
  Text sync;
  Text label;
  Text history;
  Text notify;
  bool exports = false;
  bool json = false;
  Text log_format;
  bool quiet = false;
};

void add_acquire_options(Options& options, RawAcquire& raw);

Result<AcquireRequest> resolve_acquire(const RawAcquire& raw, std::span<const std::string> operands,
                                       const Environment& environment);

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
