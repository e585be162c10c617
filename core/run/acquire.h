// SPDX-License-Identifier: Apache-2.0
// The story of `rlock acquire`: take a lock for somebody else, leave a keeper with it or nobody, and return.
#pragma once

#include "base/defaults.h"
#include "base/exit_code.h"
#include "run/environment.h"
#include "run/run.h"
#include "store/open.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rlock {

// The process for which a lock is kept: the lock ends with it.
struct WatchedProcess {
  pid_t pid;
  int lost_signal = SIGTERM;  // what it gets when the lock is lost
  OnLost on_lost = OnLost::stop;
};

struct AcquireRequest {
  ServerSpec server;
  LockName name;
  std::vector<LockName> shards = {};  // any free one of these instead of the name; empty: the name
  Mode mode = Plain{};
  Millis ttl = default_ttl;
  std::optional<Millis> wait;  // missing: for ever; zero: not at all
  int busy_code = static_cast<int>(ExitCode::busy);
  unsigned sync = 0;  // how many replicas must have the lock
  std::string label;
  std::optional<WatchedProcess> watched;  // missing: one lease, which nobody renews
  std::vector<std::string> environment;   // NAME=value, ours: a lock that stands there is re-entered
};

// Called when the lock is taken and, for a watched, a keeper has it. Whoever cannot be told does not have it: after an
// Error it is given back.
using TellCaller = std::function<Result<Done>(const HeldLock& lock, std::uint64_t fence)>;

// To be called from main, while the process has one thread. Success and busy, which is on the log, are ends; so is a
// signal. An Error, besides those of the store and of `tell`: ErrorCode::usage (there is no such watched, or we may not
// signal it), ErrorCode::os (no keeper could be started). Unless it ends with 0 nothing is held; where we are killed before
// the caller was told, it is the keeper, or the ttl, that sees to that.
Result<RunEnd> acquire(const AcquireRequest& request, RunContext context, const TellCaller& tell);

}  // namespace rlock
