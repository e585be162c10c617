// SPDX-License-Identifier: Apache-2.0
// rlock run: its options, and the RunRequest that is made of them. rlock once shares them.
#pragma once

#include "cli/options/lock.h"
#include "cli/options/run.h"
#include "cli/options/server.h"
#include "cli/options/verb.h"
#include "run/run.h"

namespace rlock::cli {

struct RawRun {
  RawKeys keys;
  RawServer server;
  RawWaitOptions wait_options;
  RawMode mode;
  Text shards;
  std::vector<Text> values;  // of the rows of the table in run.cpp, in their order
  Text label;
  Text history;
  Text sync;
  RawConcurrency concurrency;
  Text log_format;
  bool quiet = false;
  bool verbose = false;
};

void add_run_options(Options& options, RawRun& raw);
void add_common_run_options(Options& options, RawRun& raw);  // without those of the keys and the kind of lock

// ErrorCode::usage, ErrorCode::config: an option, a variable or the config file has a value that makes no sense.
Result<RunRequest> resolve_run(const RawRun& raw, const std::vector<std::string>& command,
                               const Environment& environment);

// Runs the request, or returns its error after --log-format has been applied.
Result<RunEnd> run_request(const RawRun& raw, const Call& call, const Result<RunRequest>& request);

}  // namespace rlock::cli
