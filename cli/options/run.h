// SPDX-License-Identifier: Apache-2.0
// How long a verb waits for a busy lock, and for a server that cannot be reached.
// --history.
// --notify.
#pragma once

#include "cli/options/option_table.h"

#include <optional>
#include <string>

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

void add_wait_options(Options& options, RawWaitOptions& raw);  // -n, -w and --wait-server
void add_wait_server_option(Options& options, Text& raw);

// ErrorCode::usage: --no-wait and --wait exclude each other.
Result<WaitTimes> resolve_wait_options(const RawWaitOptions& raw);
Result<Millis> resolve_wait_server(const Text& raw);

void add_history_option(Options& options, Text& raw);

// nullopt when the option was not given; else at least default_history.
Result<std::optional<Millis>> resolve_history(const Text& raw);

inline constexpr const char* notify_help =
    "run CMD by /bin/sh once, when the run is over and the lock released, with RLOCK_OUTCOME (succeeded, failed, lost, "
    "forced, timed_out, busy, replaced, unreachable), RLOCK_EXIT_CODE, RLOCK_DURATION_MS and RLOCK_MESSAGE; it has 30s "
    "and changes no "
    "exit code";

void add_notify_option(Options& options, Text& raw, const char* help);

// Empty when the option was not given. ErrorCode::usage: the command is empty.
Result<std::string> resolve_notify(const Text& raw);

}  // namespace rlock::cli
