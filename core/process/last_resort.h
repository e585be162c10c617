// SPDX-License-Identifier: Apache-2.0
// Lets the kernel kill the job when the guardian is killed, or is stopped for too long.
//
// The guardian holds the write end of a pipe, and the job inherits the read end. The read end has O_ASYNC with SIGKILL as its
// signal and the job's process group as its owner, so the kernel kills the group when the write end closes (F_SETSIG in
// fcntl(2)). A POSIX timer kills the guardian itself at a given instant, also a guardian that is stopped (timer_create(2)). A job
// that closes the descriptor loses only this protection. So does a job for which the system refuses a descriptor, timer or
// signal; refused() has the reason. No function of this class fails.
#pragma once

#include "base/clock.h"
#include "base/fd.h"
#include "process/job.h"
#include "process/launch.h"

#include <optional>

#include <time.h>

namespace rlock {

// The guardian, which has one thread, makes this object before it starts the job.
class LastResort {
 public:
  LastResort();
  ~LastResort();
  LastResort(const LastResort&) = delete;
  LastResort& operator=(const LastResort&) = delete;

  // Covers the process that becomes the job. That process calls this when it is in its group. With Grouping::shared only that
  // process is covered, because the caller of rlock is in the group. Async-signal-safe.
  void cover_this_process(Grouping grouping);

  // When the kernel kills the guardian; far_future: never.
  void set_due(Instant due);

  // What the system has refused so far. What it refused to cover_this_process() is known when the job has started.
  [[nodiscard]] const LastResortRefused& refused() const { return m_refused; }

  // From now on the kernel kills no process of the job.
  void disarm();

 private:
  void make_pipe();
  void make_timer();

  Fd m_inherited;  // the read end
  Fd m_held;       // the write end, which no other process has
  std::optional<timer_t> m_timer;
  Instant m_due = far_future;
  LastResortRefused m_refused;
};

}  // namespace rlock
