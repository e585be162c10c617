// SPDX-License-Identifier: Apache-2.0
// `rlock run`: acquires the locks, runs the job, watches the leases, stops the job, releases the locks.
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

// flock: behaves like flock(1). rlock ends with the command, and a keeper holds the lock for the processes that the
// command left. If the command cannot be executed, rlock ends with 69; if signal n killed it, with 128 + n. A lock that
// an ancestor holds is not reentered.
enum class Compatibility { own, flock };

struct RunRequest {
  ServerSpec server;
  std::set<LockName> names;      // acquired in this order by all callers, so that no cycle of waiters arises
  std::vector<LockName> shards;  // if not empty: acquires any free one of these; `names` has one name, their base
  Mode mode = Plain{};
  Millis ttl = default_ttl;
  bool automatic = true;       // renewed; false: the job is stopped when the ttl ends, ExitCode::time_over
  std::optional<Millis> wait;  // nullopt: wait for ever; 0: do not wait
  Millis wait_server{0};       // how long a server that cannot be reached at the start is tried again
  std::optional<Millis> once;  // rlock once: skip the job if it succeeded within that time
  bool again = false;          // rlock once: run the job anyway
  Millis min_hold{0};          // the lock stays taken at least this long
  int busy_code = static_cast<int>(ExitCode::busy);
  bool cancel_in_progress = false;  // the holder is asked to stop
  bool latest = false;              // of the runs that wait so only the newest stays in line
  std::string label;
  std::optional<Millis> history;  // how long the server keeps events of the locks; nullopt: default_history
  unsigned sync = 0;              // how many replicas must have confirmed the grant
  OnLost on_lost = OnLost::stop;
  Compatibility compatibility = Compatibility::own;

  std::vector<std::string> argv;         // the job
  std::vector<std::string> environment;  // NAME=value, of this process; the job's has RLOCK_* as well
  int stop_signal = SIGTERM;
  Millis kill_after = default_kill_after;
  bool kills_after_signal = false;  // kill_after also counts from a signal that is passed on
  Leftovers leftovers = Leftovers::stop;
  std::optional<Millis> max_runtime;
  std::string notify = {};  // for /bin/sh, when the run is over; empty: nothing
};

// All must outlive the call.
struct RunContext {
  const Clock& clock;
  Rng& rng;
  Signals& signals;
  const Log& log;
};

// Called from main, while the process has one thread. If the code is not the job's, logs why. Afterwards no process of
// the job is left but daemons (process/job.h) and what `leftovers` allows; what is left on the server ends with its ttl.
RunEnd run(const RunRequest& request, RunContext context);

}  // namespace rlock
