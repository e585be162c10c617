// SPDX-License-Identifier: Apache-2.0
// Tells whether processes of the job are left, as flock(1) does it: all processes of the job inherit the write end of a
// pipe. A process that closes it or ends is no longer under the lock. The read end hangs up when the last holder of the
// write end is gone.
#pragma once

#include "base/fd.h"

#include <utility>

#include <sys/types.h>

namespace rlock {

class InheritedPipe {
 public:
  // Returns the write end for the job to inherit; the caller closes it after that. Empty: there is no descriptor.
  Fd open();

  [[nodiscard]] int fd() const
  {
    return m_pipe.get();
  }  // the read end: POLLHUP: no process holds the pipe; -1: not opened
  [[nodiscard]] bool is_held() const;

  // Sends KILL to the holders in the session in which the pipe was opened, and in the one that the job's main process
  // may have made, until none is left or kill_patience is over. Holders in other sessions are daemons and are not touched.
  void kill_all(pid_t main) const;

 private:
  Fd m_pipe;
  pid_t m_session = 0;
};

}  // namespace rlock
