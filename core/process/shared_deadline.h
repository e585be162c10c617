// SPDX-License-Identifier: Apache-2.0
// The instant by which the job must be dead, in a page shared by the runner's watchdog, which moves it, and the
// guardian, which acts on it. Lock-free, so that a stopped or killed writer does not block the reader. In the same page the job's
// main process leaves its number for the runner.
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

  // Readable when the instant was moved since it was last noted: the guardian's timer has to move as well.
  [[nodiscard]] int moved_fd() const { return m_moved.get(); }
  void note_move() const;

  void set_main_process(pid_t pid);          // async-signal-safe
  [[nodiscard]] pid_t main_process() const;  // 0: none was started

 private:
  struct Page {
    std::atomic<std::int64_t> valid_until;
    std::atomic<pid_t> main_process;
  };
  Page* m_page;  // MAP_SHARED, survives fork in both
  Fd m_moved;
};

}  // namespace rlock
