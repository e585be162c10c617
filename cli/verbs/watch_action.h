// SPDX-License-Identifier: Apache-2.0
// What the user of `rlock watch` does to a lock. A process of its own does it, so that the screen goes on meanwhile.
#pragma once

#include "base/fd.h"
#include "cli/options/server.h"
#include "cli/options/verb.h"
#include "cli/output/watch.h"

#include <memory>
#include <string>

#include <sys/types.h>

namespace rlock::cli {

// Why the action makes no sense for this lock; empty: it does.
std::string obstacle_to(LockAction action, const LockState& state);

// Used from one thread; the process must have no other one.
class WatchAction {
 public:
  // Forks. ErrorCode::os: the system has no process or descriptor left.
  static Result<std::unique_ptr<WatchAction>> start(const Question& confirmed, const RawServer& server,
                                                    const Call& call);
  ~WatchAction();  // kills the process, if it still runs; a freeze that waits for the end of a job is given up
  WatchAction(const WatchAction&) = delete;
  WatchAction& operator=(const WatchAction&) = delete;

  [[nodiscard]] int fd() const { return m_output.get(); }  // readable: there is a line, or the process has ended

  struct Heard {
    bool spoke;  // last_line() is new
    bool ended;
  };
  // Reads what there is.
  Heard read();
  [[nodiscard]] std::string last_line() const;  // of what it has said; empty: nothing yet

 private:
  WatchAction(pid_t pid, Fd output) : m_pid(pid), m_output(std::move(output)) {}

  pid_t m_pid;
  Fd m_output;
  std::string m_text;
};

}  // namespace rlock::cli
