// SPDX-License-Identifier: Apache-2.0
// The process that `rlock acquire --pid` leaves behind: it keeps the lock for as long as the process lives that the lock
// was taken for, its watched, and releases it then.
//
//   script ── rlock acquire (gone)
//        ╰─── keeper: a session of its own; a watchdog thread, as the runner has one
//
// When the lock is lost the watched is told by a signal: at once when that is proven, else before `valid_until`, as early as
// a job is. That is all: the watched is no child of ours, its own children are unknown, and nobody is killed. A keeper
// that is itself ended by KILL can tell nothing; the lock goes with its ttl.
#pragma once

#include "base/fd.h"
#include "lock/waiting.h"
#include "process/pidfd.h"
#include "process/signals.h"
#include "run/run.h"

namespace rlock {

struct KeeperTask {
  LockStore& store;
  const LockSpec& spec;
  const Hold& hold;
  Taken& taken;
  const PidFd& watched;
  int lost_signal;  // what the watched gets when the lock is lost
  OnLost on_lost;
  Millis server_timeout;
  const Clock& clock;
  Signals& signals;
};

// For a process that has just been forked to keep a lock.
void detach_as_keeper();

// A keeper that runs and has taken over: the store is its own from now on.
class Keeper {
 public:
  // From a process with one thread. ErrorCode::os: there is none, the lock is still ours, and the store must forget its
  // connection.
  static Result<Keeper> start(const KeeperTask& task);

  // Until it is told that the caller has its token, the keeper keeps the lock for us: if we go away it is released.
  void caller_knows() const;

 private:
  explicit Keeper(Fd socket) : m_socket(std::move(socket)) {}
  Fd m_socket;
};

}  // namespace rlock
