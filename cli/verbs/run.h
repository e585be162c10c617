// SPDX-License-Identifier: Apache-2.0
// rlock run: what was typed, and what it means.
#pragma once

#include "cli/options/keys.h"
#include "cli/options/mode.h"
#include "cli/options/server.h"
#include "cli/options/wait_options.h"
#include "cli/verbs/verb.h"
#include "run/run.h"

namespace rlock::cli {

struct RawRun {
  RawKeys keys;
  RawServer server;
  RawWaitOptions wait_options;
  RawMode mode;
  Text busy_code;
  Text shards;
  Text lease;
  Text ttl;
  Text min_hold;
  Text max_runtime;
  Text signal;
  Text kill_after;
  Text leftovers;
  Text on_lost;
  Text label;
  Text sync;
  Text log_format;
  bool quiet = false;
  bool verbose = false;
};

void add_run_options(Options& options, RawRun& raw);
void add_common_run_options(Options& options, RawRun& raw);  // all but the keys and the kind of lock

Result<RunRequest> resolve_run(const RawRun& raw, const std::vector<std::string>& command,
                               const Environment& environment);

// Runs it, unless it cannot be meant.
Result<RunEnd> execute(const RawRun& raw, const Call& call, const Result<RunRequest>& request);

}  // namespace rlock::cli
