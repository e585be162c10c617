// SPDX-License-Identifier: Apache-2.0
// How long a verb waits for a busy lock, and for a server that cannot be reached.
#pragma once

#include "cli/options/options.h"

namespace rlock::cli {

struct RawWaitOptions {
  bool no_wait = false;
  Text wait;
  Text wait_server;
};

struct WaitTimes {
  std::optional<Millis> lock;  // missing: for ever; zero: not at all
  Millis server{0};
};

inline constexpr const char* no_wait_help = "give up at once when the lock is busy";

void add_wait_options(Options& options, RawWaitOptions& raw);  // -n, -w and --wait-server
void add_wait_server_option(Options& options, Text& raw);

// ErrorCode::usage: --no-wait and --wait exclude each other.
Result<WaitTimes> resolve_wait_options(const RawWaitOptions& raw);
Result<Millis> resolve_wait_server(const Text& raw);

}  // namespace rlock::cli
