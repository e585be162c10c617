// SPDX-License-Identifier: Apache-2.0
// Who of the job is left, as flock(1) tells it: all of the job inherits one descriptor, and who closes it, or ends, is
// under the lock no more. A pipe whose reading end is ours hangs up with the last of them.
#pragma once

#include "base/fd.h"

#include <utility>

#include <sys/types.h>

namespace rlock {

class InheritedPipe {
 public:
  // The end that the job is to inherit: to be closed here as soon as it has. Nothing where there is no descriptor to be had.
  Fd open();

  [[nodiscard]] int fd() const { return m_pipe.get(); }  // POLLHUP: there are none; -1: was not opened
  [[nodiscard]] bool any() const;

  // KILL to all that are of the session in which this was opened, or of the one that the job's main process may have made,
  // until none of those is left. Others, which called setsid(2), are daemons and not touched.
  void kill_all(pid_t main) const;

 private:
  Fd m_pipe;
  pid_t m_session = 0;
};

}  // namespace rlock
