// SPDX-License-Identifier: Apache-2.0
// A thread in which all signals are blocked, so that another thread, which waits for signals, gets them.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

#include <pthread.h>

namespace rlock {

// Throws std::system_error when the system has no thread left.
template <typename Body>
std::thread signal_blocked_thread(Body body)
{
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  struct Restore {
    const sigset_t& mask;
    ~Restore() { ::pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } const restore{before};
  return std::thread(std::move(body));
}

}  // namespace rlock
