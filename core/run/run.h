// SPDX-License-Identifier: Apache-2.0
// The story of `rlock run`: acquire, run, watch, stop, release.
#pragma once

#include "base/defaults.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/rng.h"
#include "process/job.h"
#include "run/run_end.h"
#include "store/open.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace rlock {

enum class OnLost { stop, warn };

// flock: those of flock(1). The call is over with the command, while a keeper keeps the lock for its heirs; a command
// that cannot be executed is 69, one killed by signal n is 128 + n; and a lock of an ancestor's is not re-entered.
enum class Compatibility { own, flock };

struct RunRequest {
  ServerSpec server;
  std::set<LockName> names;      // taken in this order, the same for all, so that nobody waits in a circle
  std::vector<LockName> shards;  // any free one of these instead, for the one name; empty: the names
  Mode mode = Plain{};
  Millis ttl = default_ttl;
  bool automatic = true;       // renewed; else the job is over when the ttl is, exit 124
  std::optional<Millis> wait;  // missing: for ever; zero: not at all
  std::optional<Millis> once;  // rlock once: not at all if it has succeeded within that time
  bool again = false;          // run it whatever has succeeded
  Millis min_hold{0};          // the lock stays taken at least this long
  int busy_code = static_cast<int>(ExitCode::busy);
  std::string label;
  unsigned sync = 0;  // how many replicas must have the lock
  OnLost on_lost = OnLost::stop;
  Compatibility compatibility = Compatibility::own;

  std::vector<std::string> argv;         // the job
  std::vector<std::string> environment;  // NAME=value, ours; the job gets RLOCK_* on top
  int stop_signal = SIGTERM;
  Millis kill_after = default_kill_after;
  Leftovers leftovers = Leftovers::stop;
  std::optional<Millis> max_runtime;
};

// What the story needs of the world; all must outlive the call.
struct RunContext {
  const Clock& clock;
  Rng& rng;
  Signals& signals;
  const Log& log;
};

// To be called from main, while the process has one thread. Says on the log why it ends with a code of its own. When it
// returns nothing of the job is left, and nothing of ours on the server that the ttl does not end.
RunEnd run(const RunRequest& request, RunContext context);

}  // namespace rlock
