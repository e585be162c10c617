// SPDX-License-Identifier: Apache-2.0
#include "process/pidfd.h"

#include "base/stop.h"

#include <cerrno>
#include <string>
#include <system_error>

#include <sys/syscall.h>
#include <unistd.h>

namespace rlock {
namespace {

// System calls by number, because glibc has functions for them since 2.36 only.
int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

bool send(int pidfd, int number) { return ::syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, 0) == 0; }

Error not_held(pid_t pid, int error)
{
  const std::string number = std::to_string(pid);
  switch (error) {
    case ESRCH: return {ErrorCode::usage, "there is no process " + number};
    case EINVAL:
    case ENOENT: return {ErrorCode::usage, number + " is no process of its own but a thread"};
    case ENOSYS: return {ErrorCode::os, "this kernel has no pidfd_open (Linux 5.3 has)"};
    default: return {ErrorCode::os, "cannot hold process " + number + ": " + std::generic_category().message(error)};
  }
}

}  // namespace

Result<PidFd> PidFd::open(pid_t pid)
{
  Fd fd(open_pidfd(pid));  // close-on-exec, always
  if (!fd) {
    return not_held(pid, errno);
  }
  PidFd held(std::move(fd));
  if (held.has_ended()) {  // not reaped yet
    return not_held(pid, ESRCH);
  }
  return held;
}

bool PidFd::has_ended() const { return StopToken(fd()).requested(); }

bool PidFd::may_be_signalled() const { return send(fd(), 0); }

void PidFd::signal(int number) const { send(fd(), number); }

}  // namespace rlock
