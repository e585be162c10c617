// SPDX-License-Identifier: Apache-2.0
// The process that `rlock acquire --pid` leaves behind. It holds the lock for as long as the watched process lives, and
// releases it when that process ends.
//
//   script ── rlock acquire (ended)
//        ╰─── keeper: a session of its own, one watchdog thread
//
// When the lock is lost the keeper sends one signal to the watched process: at once when the loss is proven, else
// before `valid_until`, as early as a job gets its stop signal. It kills no process, because the watched process is no
// child of the keeper and its children are unknown. A keeper that is killed sends no signal; the lock ends with its
// ttl.
#pragma once

#include "base/fd.h"
#include "lock/waiting.h"
#include "process/pidfd.h"
#include "process/signals.h"
#include "run/run.h"

namespace rlock {

// All that it refers to must outlive the keeper.
struct KeeperTask {
  LockStore& store;
  const LockSpec& spec;
  const Hold& hold;
  Taken& taken;
  const PidFd& watched;  // the process
  int lost_signal;       // sent to it when the lock is lost
  OnLost on_lost;
  Millis server_timeout;
  const std::string& notify;                        // a command for /bin/sh; empty: none
  std::vector<std::string> environment_for_notify;  // without RunNews
  const Clock& clock;
  Signals& signals;
};

// Detaches a process that was just forked from its caller, and names it.
void detach_as_keeper();

// A keeper that runs; only it uses the store from then on.
class Keeper {
 public:
  // Forks; to be called while the process has one thread. ErrorCode::os: there is no keeper, the caller still holds the
  // lock, and the store must forget its connection.
  static Result<Keeper> start(const KeeperTask& task);

  // The caller has its token. Until then the keeper releases the lock when this process ends.
  void confirm_caller_has_token() const;

 private:
  explicit Keeper(Fd socket) : m_socket(std::move(socket)) {}
  Fd m_socket;
};

}  // namespace rlock
