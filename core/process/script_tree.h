// SPDX-License-Identifier: Apache-2.0
// The processes of a script that holds a lock by `rlock acquire --export`. They are no descendants of the keeper. The script opens a
// pipe of the keeper, and what the script starts inherits the pipe.
//
//   keeper: both ends ── the shell opens the write end by /proc and writes a byte ── the keeper closes its write end
//
// These processes belong to the script: the script itself, each process that has the pipe, and their descendants, also those that
// have closed the pipe. A daemon is spared although it has the pipe: its session is not that of the script, and its parent does not
// belong to the script.
#pragma once

#include <sys/types.h>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "process/job.h"
#include "process/proc.h"
#include "process/signals.h"

namespace rlock {

// What a shell evaluates to open the pipe.
struct PipeForScript {
  std::string path;  // the write end in /proc
  int descriptor;    // of the script
};

// Ownership: owns both ends.
class ScriptPipe {
 public:
  static Result<ScriptPipe> open();  // ErrorCode::os

  // Where another process of this user may open the write end of `keeper`, a fork of this process; empty: /proc does not show it.
  [[nodiscard]] std::string path_in(pid_t keeper) const;

  [[nodiscard]] int fd() const { return m_read.get(); }  // before is_joined(): readable when the script has the pipe
  // Whether a script has opened the pipe. Then this process has closed its write end.
  bool is_joined();
  [[nodiscard]] bool is_held() const;  // call this when is_joined(): a process has the pipe

 private:
  ScriptPipe(Fd read, Fd write) : m_read(std::move(read)), m_write(std::move(write)) {}
  Fd m_read;
  Fd m_write;
};

// The highest descriptor of one digit, as dash knows no others, that is free in the script and in the shell that called this process,
// which may be another one. A pipe without a reader, which an earlier keeper has left, is free as well. ErrorCode::os: there is none, or
// the script cannot open the pipe; the text says why.
Result<int> descriptor_for_pipe(pid_t script, pid_t shell);

struct ScriptProcess {
  ProcessInfo process;
  bool has_pipe;
};

// Tells which processes belong to the script.
struct ScriptRules {
  pid_t script;                                           // 0: it has ended
  std::set<pid_t> sessions;                               // of the script, not of daemons
  std::set<pid_t> members = {};                           // known before, also those without the pipe
  std::optional<std::set<pid_t>> daemons = std::nullopt;  // the sessions of the daemons; nullopt: not decided yet
};

struct ScriptMembers {
  std::vector<ScriptProcess> members;  // the script first
  std::set<pid_t> daemons;             // the sessions of other processes that have the pipe
};

// `seen`: the processes that live.
ScriptMembers members_of(const std::vector<ScriptProcess>& seen, const ScriptRules& rules);

// Threads: used from one thread.
class ScriptTree {
 public:
  // `script` and `pipe` must outlive the object.
  ScriptTree(pid_t pid, const PidFd& script, const ScriptPipe& pipe);

  [[nodiscard]] bool is_empty();
  // The present sessions stay sessions of the script: a signal that asks to end was sent, which may end the parents of others.
  void keep_sessions();

  // Sends a signal to all, and CONT. The first call of this or of kill_all() decides which sessions are daemons.
  void stop(int signal);
  // Sends KILL to all until none is left, `time_limit` is over, or only processes are left that may not be signalled. Returns what is
  // left.
  std::vector<LeftProcess> kill_all(Millis time_limit);

 private:
  std::vector<ScriptProcess> alive();
  std::vector<LeftProcess> kill_each();
  void decide_daemons();

  const PidFd& m_script;
  const ScriptPipe& m_pipe;
  ScriptRules m_rules;
  std::map<pid_t, PidFd> m_without_pipe;  // members that only their parents showed
  std::set<pid_t> m_daemons;              // as last seen
};

}  // namespace rlock
