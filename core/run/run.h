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

// flock: rlock behaves like flock(1). rlock ends with the command, and a keeper holds the lock while processes of the command are
// left. If the command cannot be executed, the exit code is ExitCode::unavailable; if signal n killed the command, it is 128 + n.
// rlock does not enter a lock that an ancestor holds.
enum class Compatibility { own, flock };

struct RunRequest {
  ServerSpec server;
  std::set<LockName> names;      // all callers acquire in this order, so that no cycle of waiters arises
  std::vector<LockName> shards;  // not empty: acquires any free one of these; `names` has the name that they share
  Mode mode = Plain{};
  Millis ttl = default_ttl;
  bool automatic = true;  // the lease is renewed; false: the job is stopped when the ttl ends (ExitCode::time_over)
  std::optional<Millis> wait;  // how long to wait for a busy lock; nullopt: for ever
  Millis wait_server{0};       // how long to retry a server that cannot be reached at the start
  std::optional<Millis> once;  // rlock once: skip the job if it succeeded within this time
  bool again = false;          // rlock once: run the job although it succeeded
  Millis min_hold{0};          // the lock stays taken at least this long
  int busy_code = static_cast<int>(ExitCode::busy);
  bool cancel_in_progress = false;  // ask the holder to stop
  bool latest = false;              // a newer run with this flag takes the place of this one in the queue
  std::string label;
  std::optional<Millis> history;  // how long the server keeps events of the locks; nullopt: default_history
  unsigned sync = 0;              // how many replicas must confirm the grant
  OnLost on_lost = OnLost::stop;
  Compatibility compatibility = Compatibility::own;

  std::vector<std::string> argv;         // the job
  std::vector<std::string> environment;  // of this process, as NAME=value; the job gets RLOCK_* besides
  int stop_signal = SIGTERM;
  Millis kill_after = default_kill_after;
  bool kills_after_signal = false;  // kill_after also counts from a signal that rlock passes on
  Leftovers leftovers = Leftovers::stop;
  std::optional<Millis> max_runtime;
  std::string notify = {};  // a command for /bin/sh when the run is over; empty: none
};

// What a run uses. All must outlive the call.
struct RunContext {
  const Clock& clock;
  Rng& rng;
  Signals& signals;
  const Log& log;
};

// Runs the job under its locks. Logs why, if the exit code is not the job's. Afterwards no process of the job is left but daemons
// (process/job.h) and the processes that `leftovers` allows; what is left on the server ends with its ttl.
// Threads: call this from main, while the process has one thread.
RunEnd run(const RunRequest& request, RunContext context);

}  // namespace rlock
