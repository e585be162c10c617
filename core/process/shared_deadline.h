// SPDX-License-Identifier: Apache-2.0
// When each step against a job is due unless its lease is renewed, in a page of shared memory. The runner's watchdog moves the
// times, and the guardian acts on them. The page has no lock, so that a stopped or killed writer does not block the reader. The
// same page tells the runner about the job, for the case that the guardian is killed.
#pragma once

#include "base/clock.h"
#include "base/fd.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>

#include <sys/types.h>

namespace rlock {

// The times of the steps; far_future: never.
struct StopTimes {
  Instant signal;       // the guardian sends the stop signal
  Instant kill;         // the guardian sends KILL
  Instant last_resort;  // the kernel kills a guardian that has not finished
  Instant lease_end;    // the job must be dead before
};
inline constexpr StopTimes never_stopped{far_future, far_future, far_future, far_future};

class SharedDeadline {
 public:
  explicit SharedDeadline(const StopTimes& times);  // throws std::system_error when there is no memory or descriptor
  ~SharedDeadline();
  SharedDeadline(const SharedDeadline&) = delete;
  SharedDeadline& operator=(const SharedDeadline&) = delete;

  // Moves the times. A reader may see some times moved and others not yet. Each time is right by itself, because a step that was
  // due before the move was allowed before the move.
  void move_to(const StopTimes& times);
  [[nodiscard]] StopTimes times() const;

  // Readable when the deadline was moved since the last note_move(): the guardian must move its timer.
  [[nodiscard]] int moved_fd() const { return m_moved.get(); }
  void note_move() const;

  void set_main_process(pid_t pid);          // async-signal-safe
  [[nodiscard]] pid_t main_process() const;  // 0: no process was started

  // The sessions of the job's daemons, as the guardian last saw them. If there are more than `most_daemons`, some are missing.
  void set_daemons(const std::set<pid_t>& sessions);
  [[nodiscard]] std::set<pid_t> daemons() const;
  static constexpr std::size_t most_daemons = 64;

 private:
  struct Page {
    std::atomic<std::int64_t> signal, kill, last_resort, lease_end;
    std::atomic<pid_t> main_process;
    std::array<std::atomic<pid_t>, most_daemons> daemons;  // 0: none
  };
  Page* m_page;  // MAP_SHARED: runner and guardian see the same after fork
  Fd m_moved;
};

}  // namespace rlock
