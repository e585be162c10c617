// SPDX-License-Identifier: Apache-2.0
// A thread of a simulated process: code with a stack of its own that runs until it blocks. One fiber runs at a time, so a
// run is the same each time.
#pragma once

#include "sim/stack_switch.h"

#include <exception>
#include <functional>

#include <poll.h>
#include <ucontext.h>

namespace rlock::sim {

struct Process;

using Nanos = std::int64_t;  // of true time, since the start of the schedule
constexpr Nanos never = INT64_MAX;

// Thrown in the fibers of a process that was killed, to free what they own.
struct Killed {};

class Fiber {
 public:
  Fiber(Process& owner, std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  static Fiber* running();  // nullptr: the scheduler runs

  // For the scheduler, or for a fiber that unwinds another one: runs the fiber until it blocks or ends. Throws what the body threw.
  void resume();
  // For the fiber itself: goes back to the scheduler.
  void suspend();

  Process& process;
  bool is_done = false;
  bool is_thread = false;  // not the first of its process

  // What the suspended fiber waits for.
  pollfd* waits = nullptr;
  nfds_t wait_count = 0;
  Nanos deadline = never;
  const Fiber* joins = nullptr;
  Nanos ready_at = never;  // when it runs again; never: there is no reason yet

 private:
  static void enter(unsigned high, unsigned low);

  std::function<void()> m_body;
  std::exception_ptr m_failure;
  void* m_stack;
  StackSwitch m_switch;
  ucontext_t m_context{};
  ucontext_t m_scheduler{};
};

}  // namespace rlock::sim
