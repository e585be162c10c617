// SPDX-License-Identifier: Apache-2.0
// rlock flock: its options, and the RunRequest that is made of them.
#pragma once

#include "cli/options/lock.h"
#include "cli/options/server.h"
#include "cli/options/verb.h"
#include "run/run.h"

namespace rlock::cli {

enum class FlockKind { exclusive, shared, none };

struct RawFlock {
  RawKeys keys;  // only the prefix; the key is the first operand
  RawServer server;
  FlockKind kind = FlockKind::exclusive;
  bool no_wait = false;
  Text wait;
  Text wait_server;
  Text busy_code;
  bool close = false;
  bool verbose = false;
  bool wants_version = false;
  Text ttl;
  Text label;
  Text history;
  Text notify;
  Text log_format;
  std::string unsupported;  // an option of flock(1) that a key cannot have, and why; empty: none was given
};

void add_flock_options(Options& options, RawFlock& raw);

// `operands`: KEY and the command. Accepts what flock(1) accepts: -n together with -w means -n, unlike with `run`.
Result<RunRequest> resolve_flock(const RawFlock& raw, const std::vector<std::string>& operands,
                                 const Environment& environment);

}  // namespace rlock::cli
