// SPDX-License-Identifier: Apache-2.0
// The keeper: the process that `rlock acquire --pid` leaves behind. The keeper holds the locks while the watched process lives,
// and releases them when that process ends. One lost lock counts as the loss of all.
//
//   script ── rlock acquire (ended)
//        ╰─── keeper: a session of its own, one watchdog thread
//
// A script that has opened the pipe of its keeper (process/script_tree.h) is treated with all that it has started as the job of
// `rlock run`: what it leaves behind is stopped, and nothing of it lives when the lease ends. The same pure decisions say when
// (process/stopping.h). Of a process without the pipe the children are unknown: it gets one signal when the lock is lost, and no
// KILL. A keeper that is killed sends no signal; the lock ends with its ttl.
//
// Another keeper keeps a fixed lease, or --min-hold, that is longer than the longest session of ZooKeeper: leave_keeper_of_leases.
#pragma once

#include <string>
#include "base/fd.h"
#include "base/result.h"
#include "process/script_tree.h"
#include "process/signals.h"
#include "run/lock_set.h"

namespace rlock {

// All that the task refers to must outlive the keeper.
struct KeeperTask {
  const RunRequest& request;
  const RunContext& context;
  LockSet& lock_set;     // the locks, which are held, by one token
  const PidFd& watched;  // RunRequest::watched
  bool has_pipe;         // the script may open a pipe of the keeper
};

// A running keeper. Only the keeper uses the store from then on.
class Keeper {
 public:
  // Forks the keeper. Threads: call this while the process has one thread. ErrorCode::os: there is no keeper, the caller still
  // holds the lock, and the store must drop its connection.
  static Result<Keeper> start(const KeeperTask& task);

  // Tells the keeper that the caller has its token. Before that, the keeper releases the lock when this process ends.
  void confirm_caller_has_token() const;

  [[nodiscard]] const std::string& pipe_path() const { return m_pipe_path; }  // empty: there is no pipe

 private:
  Keeper(Fd socket, std::string pipe_path) : m_socket(std::move(socket)), m_pipe_path(std::move(pipe_path)) {}
  Fd m_socket;
  std::string m_pipe_path;
};

}  // namespace rlock
