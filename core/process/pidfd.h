// SPDX-License-Identifier: Apache-2.0
// A process that is not our child, held by a descriptor: its number can be given to another when it ends, this cannot.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <sys/types.h>

namespace rlock {

class PidFd {
 public:
  // Faults: usage (there is no such process, or it is a thread of one), os.
  static Result<PidFd> open(pid_t pid);

  [[nodiscard]] int fd() const { return m_fd.get(); }  // readable once the process has ended, reaped or not
  [[nodiscard]] bool has_ended() const;

  [[nodiscard]] bool may_be_signalled() const;
  void signal(int number) const;  // to one that has ended: nothing

 private:
  explicit PidFd(Fd fd) : m_fd(std::move(fd)) {}
  Fd m_fd;
};

}  // namespace rlock
