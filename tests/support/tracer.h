// SPDX-License-Identifier: Apache-2.0
// A process that KILL does not end: its tracer, the test, does not let it exit (PTRACE_O_TRACEEXIT in ptrace(2)).
#pragma once

#include "support/skip.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include <sys/ptrace.h>
#include <sys/wait.h>

namespace rlock::test {

// While it lives, the process does not end.
class Tracer {
 public:
  explicit Tracer(pid_t pid) : m_pid(pid)
  {
    skip_if(::ptrace(PTRACE_SEIZE, pid, nullptr, PTRACE_O_TRACEEXIT) != 0,
            std::string("may not trace a process: ") + std::strerror(errno));
  }
  ~Tracer() { release(); }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Lets the process end.
  void release()
  {
    if (m_pid != 0) {
      ::kill(m_pid, SIGKILL);
      ::waitpid(m_pid, nullptr, __WALL);  // until it has stopped
      ::ptrace(PTRACE_DETACH, m_pid, nullptr, nullptr);
      m_pid = 0;
    }
  }

 private:
  pid_t m_pid;
};

}  // namespace rlock::test
