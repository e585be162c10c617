// SPDX-License-Identifier: Apache-2.0
// rlock acquire: its options, and the RunRequest that is made of them.
#pragma once

#include "cli/options/environment.h"
#include "cli/options/lock.h"
#include "cli/options/server.h"
#include "cli/options/take.h"
#include "run/acquire.h"
#include "run/environment.h"

#include <cstdint>
#include <span>
#include <string>

namespace rlock::cli {

struct RawAcquire {
  RawTake take;
  RunRequest request;
  std::optional<int> pid;
  bool is_lease = false;
  bool exports = false;
  bool json = false;
};

void add_acquire_options(OptionTable& options, RawAcquire& raw);

Result<RunRequest> resolve_acquire(const RawAcquire& raw, std::span<const std::string> operands,
                                   const Environment& environment);

// The output of acquire --export: a shell that evaluates it gets the variables that a job finds in its environment.
// Lines `export NAME='value'`; all but RLOCK_HELD are about the first lock. RLOCK_HELD is the environment's and these locks, each
// of which replaces an earlier one under its key unless it is nested in it. RLOCK_SERVER is left out where the environment's has the same servers and a password,
// because the exported URL has none. `unset NAME` for a variable that would come before RLOCK_PASSWORD_FILE.
std::string export_lines(const JobLocks& locks, std::uint64_t fence, const Environment& environment);

// The line after them by which the shell opens the pipe of its keeper, so that the keeper knows what the shell starts.
std::string pipe_line(const PipeForScript& pipe);

}  // namespace rlock::cli
