// SPDX-License-Identifier: Apache-2.0
// Signals as data: rlock blocks them at its start and reads them from a descriptor; there are no handlers.
//
// The constructor saves the mask and the dispositions that this process inherited, and the job gets them: a HUP that nohup(1)
// ignores stays ignored, and so does SIGCHLD. In this process SIGCHLD gets its default, because waitpid(2) loses every exit
// status when SIGCHLD is ignored.
#pragma once

#include <sys/types.h>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include "base/fd.h"
#include "base/result.h"
#include "base/stop.h"

namespace rlock {

// The signals of this process. main makes the only object while the process has one thread; the object must outlive all its
// users.
class Signals {
 public:
  Signals();

  // After this, fd() delivers INT, TERM, HUP, QUIT, USR1 and USR2, except those that were ignored at the start. PIPE, TTOU and
  // TTIN stay blocked.
  void block();

  [[nodiscard]] int fd() const { return m_fd.get(); }
  [[nodiscard]] StopToken stop() const { return StopToken(m_fd.get()); }  // readable: a signal is waiting

  struct Arrived {
    int number;
    bool from_terminal;  // the kernel sent it to the whole foreground group, so to the job as well
  };
  std::optional<Arrived> take();  // the next pending signal; nullopt: none is pending

  [[nodiscard]] bool inherited_ignored(int signal) const { return ::sigismember(&m_inherited_ignored, signal) == 1; }

  // Sets the inherited mask and dispositions again. A child calls this before exec. Async-signal-safe.
  void restore() const;

 private:
  Fd m_fd;
  sigset_t m_inherited_mask;
  sigset_t m_inherited_ignored;
};

// Ends this process by the signal that ended the job, without a second core dump. Falls back to exit(128 + signal).
[[noreturn]] void die_of(int signal);

bool asks_to_end(int signal);  // true for TERM, INT, HUP and QUIT, as in timeout(1)

std::optional<int> signal_number(std::string_view name);  // "TERM", "SIGTERM", "15"; nullopt for others
std::string signal_name(int signal);                      // "TERM"

// A descriptor of a process, which need not be a child. The kernel may give a pid to another process when its process has ended;
// a descriptor stays with its process.

class PidFd {
 public:
  // ErrorCode::usage: there is no such process, or the number is that of a thread. ErrorCode::os: the system refused.
  static Result<PidFd> open(pid_t pid);

  [[nodiscard]] int fd() const { return m_fd.get(); }  // readable when the process has ended, reaped or not
  [[nodiscard]] bool has_ended() const;
  // How the process ended, as waitpid(2) tells its parent. nullopt: it has not ended, or the kernel does not tell: before Linux
  // 6.15 the kernel forgets that when the parent has asked.
  [[nodiscard]] std::optional<int> wait_status() const;

  [[nodiscard]] bool may_be_signalled() const;
  void signal(int number) const;  // no effect on a process that has ended

 private:
  PidFd(Fd fd, pid_t pid) : m_fd(std::move(fd)), m_pid(pid) {}
  Fd m_fd;
  pid_t m_pid;
};

}  // namespace rlock
