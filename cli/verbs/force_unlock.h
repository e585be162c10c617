// SPDX-License-Identifier: Apache-2.0
// rlock force-unlock: its options, and how it prints the outcome.
#pragma once

#include "base/exit_code.h"
#include "cli/verbs/ask.h"
#include "run/environment.h"
#include "run/force.h"
#include "run/request.h"

namespace rlock::cli {

struct RawForce {
  RawKeys keys;
  RawServer server;
  OptionText token;
  bool yes = false;
  Millis grace = default_force_grace;
  std::optional<Millis> older_than;
  std::string reason;
  bool json = false;
};

void add_force_options(OptionTable& options, RawForce& raw);

struct ForceOptions {
  LockName name;
  std::optional<Owner> owner;  // missing: all holders
  bool confirmed;              // false: the holder is only printed
  Millis grace;
  std::optional<Millis> older_than;  // missing: a holder of any age
  bool json;
  std::string by = {};      // the operator, for people; resolve_force leaves it empty
  std::string reason = {};  // why; empty: no reason was given
};
Result<ForceOptions> resolve_force(const RawForce& raw, std::span<const std::string> operands);

// Prints who holds the lock, takes it, and prints how that ended.
Result<RunEnd> force_unlock(const ForceOptions& options, const OpenedStore& opened);

// One line. `proven`: LockState::proven; false: the key may hold the data of another program.
std::string show_force(const LockName& name, const ForceEnd& end, bool proven = true);
ExitCode exit_code_of_force(const ForceEnd& end);

}  // namespace rlock::cli
