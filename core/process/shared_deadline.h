// SPDX-License-Identifier: Apache-2.0
// The end of the lease, before which the job must be dead, in a page of shared memory. The runner's watchdog moves it,
// and the guardian acts on it. Lock-free, so that a stopped or killed writer does not block the reader. The same page
// has the pid of the job's main process for the runner.
#pragma once

#include "base/clock.h"
#include "base/fd.h"

#include <atomic>
#include <cstdint>

#include <sys/types.h>

namespace rlock {

class SharedDeadline {
 public:
  explicit SharedDeadline(Instant valid_until);  // throws std::system_error when there is no memory or descriptor
  ~SharedDeadline();
  SharedDeadline(const SharedDeadline&) = delete;
  SharedDeadline& operator=(const SharedDeadline&) = delete;

  void move_to(Instant valid_until);  // far_future: never
  [[nodiscard]] Instant valid_until() const;

  // Readable when the deadline was moved since the last note_move(): the guardian must move its timer.
  [[nodiscard]] int moved_fd() const { return m_moved.get(); }
  void note_move() const;

  void set_main_process(pid_t pid);          // async-signal-safe
  [[nodiscard]] pid_t main_process() const;  // 0: none was started

 private:
  struct Page {
    std::atomic<std::int64_t> valid_until;
    std::atomic<pid_t> main_process;
  };
  Page* m_page;  // MAP_SHARED: runner and guardian see the same after fork
  Fd m_moved;
};

}  // namespace rlock
