// SPDX-License-Identifier: Apache-2.0
// What the verbs that take locks ask for, what they use, and how rlock ends then.
#pragma once

#include <sys/types.h>
#include <csignal>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>
#include "base/clock.h"
#include "base/defaults.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "lock/lock_kind.h"
#include "lock/waiting.h"
#include "process/job.h"
#include "stores/open.h"

namespace rlock {

// How the rlock process ends (with an exit code, or by the signal that killed the job), and what became of a run.

struct ExitWith {
  int code;
};
struct DieOf {
  int signal;
};
using RunEnd = std::variant<ExitWith, DieOf>;

// What --notify tells about a run.
struct RunReport {
  RunEnd end;
  std::string outcome = {};                       // RLOCK_OUTCOME; empty: there was no run to tell about
  std::string holder = {};                        // RLOCK_HOLDER: who has the lock, or the newer run; empty: unknown
  std::optional<Millis> retry_in = std::nullopt;  // when the job runs again; nullopt: this run was the last attempt
  std::string message = {};  // why rlock ends with a code that is not the job's; empty: the code is the job's
};

enum class OnLost { stop, warn };

// flock: rlock behaves like flock(1). rlock ends with the command, and a keeper holds the lock while processes of the command are
// left. If the command cannot be executed, the exit code is ExitCode::unavailable; if signal n killed the command, it is 128 + n.
// rlock does not enter a lock that an ancestor holds.
enum class Compatibility { own, flock };

// What works under the locks.
//   job     the command of rlock run
//   script  the caller of rlock acquire: a keeper renews the lock, or no process does and the lock lasts for one lease
//   nobody  the caller of rlock freeze: no process works under it, and a freeze joins no hold of an ancestor
enum class HeldFor { job, script, nobody };

// The keeper of rlock acquire releases the lock when this process ends.
struct WatchedProcess {
  pid_t pid;
  bool has_pipe = false;  // it opens a pipe of the keeper; then what it starts is stopped as a job is
};

// Locks, and what works under them: how they are taken, and how the job or the script is stopped.
struct RunRequest {
  HeldFor held_for = HeldFor::job;
  ServerSpec server = {};
  std::set<LockName> names;           // acquired in this order by all callers, so that no cycle of waiters arises
  std::vector<LockName> shards = {};  // if not empty: acquires any free one of these; the only name is their base
  std::vector<std::string> shard_names = {};  // what follows "KEY:" in `shards`; empty: numbers
  LockKind kind = Plain{};
  NativeFormat beside = NativeFormat::none;
  Millis ttl = default_ttl;
  std::optional<Millis> wait = std::nullopt;  // nullopt: wait for ever; 0: do not wait
  Millis wait_server{0};                      // how long a server that cannot be reached at the start is tried again
  int busy_code = static_cast<int>(ExitCode::busy);
  unsigned sync = 0;  // how many replicas must have confirmed the grant
  std::string label = {};
  std::optional<Millis> history =
      std::nullopt;  // how long the server keeps events of the locks; nullopt: default_history
  std::optional<Millis> every = std::nullopt;  // a run is expected to succeed that often
  std::string notify = {};                     // for /bin/sh, when the lock is no longer held; empty: nothing
  std::vector<std::string> environment = {};   // NAME=value, of this process; a job's has RLOCK_* as well
  bool automatic = true;             // renewed; false: a job is stopped when the ttl ends, ExitCode::time_over
  std::optional<Millis> once;        // rlock once: skip the job if it succeeded within that time
  std::optional<Millis> per;         // rlock once: skip the job if it succeeded in this period (lock/period.h)
  bool again = false;                // rlock once: run the job anyway
  int attempts = 1;                  // rlock once: how often the job may run before its failure counts
  Millis retry_delay{10'000};        // rlock once: before the second attempt; doubles with each
  Millis min_hold{0};                // the lock stays taken at least this long
  bool cancel_in_progress = false;   // the holder is asked to stop
  std::optional<int> replaced_code;  // exit code when a newer run has taken the place of this one; nullopt: busy_code
  bool latest = false;               // of the runs that wait so only the newest stays in line
  int priority = 0;                  // HolderInfo::priority
  std::optional<unsigned> max_waiting = std::nullopt;  // LockSpec::max_waiting
  OnLost on_lost = OnLost::stop;
  Compatibility compatibility = Compatibility::own;

  std::vector<std::string> argv;          // the job
  std::optional<WatchedProcess> watched;  // the script; nullopt: one lease, which is not renewed
  // The reason of a freeze, which waits before all others; empty: it is none.
  std::string freeze = {};
  std::optional<Instant> ends_at = std::nullopt;  // when the freeze ends, whenever it begins; nullopt: after `ttl`

  // How the job is stopped, or the script when its lock is lost. A script without the pipe gets the signal alone.
  int stop_signal = SIGTERM;
  Millis kill_after = default_kill_after;
  bool kills_after_signal = false;  // kill_after also counts from a signal that rlock passes on
  Leftovers leftovers = Leftovers::stop;
  std::optional<Millis> max_runtime;

  [[nodiscard]] const LockName& name() const { return *names.begin(); }  // the first, or the only one
};

// What a run uses. All must outlive the call.
struct RunContext {
  const Clock& clock;
  Rng& rng;
  Signals& signals;
  const Log& log;
};

// `wait`: nullopt: without end; zero: one attempt. `wait_server`: how long to retry a server that cannot be reached. Both times
// begin now.
inline WaitPolicy wait_policy(std::optional<Millis> wait, Millis server_timeout, const Clock& clock,
                              Millis wait_server = Millis{0})
{
  const Instant now = clock.now();
  return {.until = wait ? std::optional{now + *wait} : std::nullopt,
          .waits = !wait || *wait > Millis{0},
          .server_timeout = server_timeout,
          .server_until = wait_server > Millis{0} ? std::optional{now + wait_server} : std::nullopt};
}

}  // namespace rlock
