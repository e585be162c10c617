// SPDX-License-Identifier: Apache-2.0
// A descriptor of a process, which need not be a child. The kernel may give a pid to another process when its process has ended;
// a descriptor stays with its process.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <sys/types.h>

namespace rlock {

class PidFd {
 public:
  // ErrorCode::usage: there is no such process, or the number is that of a thread. ErrorCode::os: the system refused.
  static Result<PidFd> open(pid_t pid);

  [[nodiscard]] int fd() const { return m_fd.get(); }  // readable when the process has ended, reaped or not
  [[nodiscard]] bool has_ended() const;

  [[nodiscard]] bool may_be_signalled() const;
  void signal(int number) const;  // no effect on a process that has ended

 private:
  explicit PidFd(Fd fd) : m_fd(std::move(fd)) {}
  Fd m_fd;
};

}  // namespace rlock
