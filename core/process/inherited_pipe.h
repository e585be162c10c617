// SPDX-License-Identifier: Apache-2.0
// Tells whether processes of the job are left, in the way of flock(1): all processes of the job inherit the write end of a pipe.
// A process that ends or closes the write end is no longer under the lock. The read end hangs up when no process holds the write
// end.
#pragma once

#include "base/fd.h"

#include <utility>

#include <sys/types.h>

namespace rlock {

class InheritedPipe {
 public:
  // Returns the write end. The job inherits it, and then the caller closes it. No descriptor: the system has none left.
  Fd open();

  [[nodiscard]] int fd() const
  {
    return m_pipe.get();
  }  // the read end: POLLHUP: no process holds the pipe; -1: not opened
  [[nodiscard]] bool is_held() const;

  // Sends KILL to the holders in the session in which the pipe was opened and in the session that the job's main process may have
  // made, until no holder is left or kill_patience is over. Holders in other sessions are daemons and stay untouched.
  void kill_all(pid_t main) const;

 private:
  Fd m_pipe;
  pid_t m_session = 0;
};

}  // namespace rlock
