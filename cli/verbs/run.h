// SPDX-License-Identifier: Apache-2.0
// rlock run: its options, and the RunRequest that is made of them. rlock once shares them.
#pragma once

#include "cli/options/take.h"
#include "cli/options/verb.h"

#include <string>
#include <vector>

namespace rlock::cli {

struct RawRun {
  RawTake take;
  RunRequest request;
};

void add_run_options(OptionTable& options, RawRun& raw);
void add_common_run_options(OptionTable& options, RawRun& raw);  // without those of the keys and the kind of lock

// ErrorCode::usage, ErrorCode::config: an option, a variable or the config file has a value that makes no sense.
Result<RunRequest> resolve_run(const RawRun& raw, const std::vector<std::string>& command,
                               const Environment& environment);

// Runs the request, or returns its error.
Result<RunEnd> run_request(const RawRun& raw, const Call& call, const Result<RunRequest>& request);

}  // namespace rlock::cli
