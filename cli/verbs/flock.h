// SPDX-License-Identifier: Apache-2.0
// rlock flock: its options, and the RunRequest that is made of them.
#pragma once

#include "cli/options/take.h"
#include "cli/options/verb.h"

namespace rlock::cli {

enum class FlockKind { exclusive, shared, none };

struct RawFlock {
  RawTake take;  // of the keys only the prefix; the key is the first operand
  RunRequest request;
  FlockKind kind = FlockKind::exclusive;
  bool no_wait = false;
  bool close = false;
  bool wants_version = false;
};

void add_flock_options(OptionTable& options, RawFlock& raw);

// `operands`: KEY and the command. Accepts what flock(1) accepts: -n together with -w means -n, unlike with `run`.
Result<RunRequest> resolve_flock(const RawFlock& raw, const std::vector<std::string>& operands,
                                 const Environment& environment);

}  // namespace rlock::cli
