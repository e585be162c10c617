// SPDX-License-Identifier: Apache-2.0
// Keeps SIGPIPE from a thread while a library works whose TLS may raise it: the signal would end a process that has not blocked it.
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>

namespace rlock {

class WithoutBrokenPipe {
 public:
  WithoutBrokenPipe()
  {
    sigemptyset(&m_pipe);
    sigaddset(&m_pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &m_pipe, &m_mask);
  }
  ~WithoutBrokenPipe()
  {
    if (sigismember(&m_mask, SIGPIPE) == 0) {
      constexpr timespec at_once{};
      while (::sigtimedwait(&m_pipe, nullptr, &at_once) < 0 && errno == EINTR) {
      }
      ::pthread_sigmask(SIG_SETMASK, &m_mask, nullptr);
    }
  }
  WithoutBrokenPipe(const WithoutBrokenPipe&) = delete;
  WithoutBrokenPipe& operator=(const WithoutBrokenPipe&) = delete;

 private:
  sigset_t m_pipe = {};
  sigset_t m_mask = {};
};

}  // namespace rlock
