// SPDX-License-Identifier: Apache-2.0
// rlock force-unlock: its options, and how it prints the outcome.
#pragma once

#include "base/exit_code.h"
#include "cli/verbs/ask.h"
#include "run/environment.h"
#include "run/force.h"
#include "run/request.h"

namespace rlock::cli {

struct ForceOptions {
  std::optional<Owner> owner = {};  // missing: all holders
  bool confirmed = false;           // false: the holder is only printed
  Millis grace = default_force_grace;
  std::optional<Millis> older_than = {};  // missing: a holder of any age
  bool json = false;
  std::string by = {};      // the operator, for people; no option sets it
  std::string reason = {};  // why; empty: no reason was given
};

struct RawForce {
  RawKeys keys;
  RawServer server;
  ForceOptions options;
};

void add_force_options(OptionTable& options, RawForce& raw);

// Prints who holds the lock, takes it, and prints how that ended.
Result<RunEnd> force_unlock(const LockName& name, const ForceOptions& options, const OpenedStore& opened);

// One line. `proven`: LockState::proven; false: the key may hold the data of another program.
std::string show_force(const LockName& name, const ForceEnd& end, bool proven = true);
ExitCode exit_code_of_force(const ForceEnd& end);

}  // namespace rlock::cli
