// SPDX-License-Identifier: Apache-2.0
// The keeper: the process that `rlock acquire --pid` leaves behind. The keeper holds the lock while the watched process lives,
// and releases the lock when that process ends.
//
//   script ── rlock acquire (ended)
//        ╰─── keeper: a session of its own, one watchdog thread
//
// When the lock is lost the keeper sends one signal to the watched process: at once when the loss is proven, else
// when a job would get its stop signal (LeaseBudget::signal_at). It kills no process, because the watched process is no
// child of the keeper and its children are unknown. A keeper that is killed sends no signal; the lock ends with its
// ttl.
#pragma once

#include "base/fd.h"
#include "lock/waiting.h"
#include "process/pidfd.h"
#include "process/signals.h"
#include "run/run.h"

namespace rlock {

// All that the task refers to must outlive the keeper.
struct KeeperTask {
  LockStore& store;
  const LockSpec& spec;
  const Hold& hold;
  Taken& taken;
  const PidFd& watched;  // the watched process
  int lost_signal;       // WatchedProcess::lost_signal
  OnLost on_lost;
  Millis server_timeout;
  const std::string& notify;                        // a command for /bin/sh; empty: none
  std::vector<std::string> environment_for_notify;  // without RunNews
  const Clock& clock;
  Signals& signals;
};

// Detaches a process that was just forked from its caller, and names it.
void detach_as_keeper();

// A running keeper. Only the keeper uses the store from then on.
class Keeper {
 public:
  // Forks the keeper. Threads: call this while the process has one thread. ErrorCode::os: there is no keeper, the caller still
  // holds the lock, and the store must drop its connection.
  static Result<Keeper> start(const KeeperTask& task);

  // Tells the keeper that the caller has its token. Before that, the keeper releases the lock when this process ends.
  void confirm_caller_has_token() const;

 private:
  explicit Keeper(Fd socket) : m_socket(std::move(socket)) {}
  Fd m_socket;
};

}  // namespace rlock
