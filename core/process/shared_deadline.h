// SPDX-License-Identifier: Apache-2.0
// When each step against a job is due unless its lease is renewed, in a page of shared memory. The runner's watchdog moves the
// times, and the guardian acts on them. The page has no lock, so that a stopped or killed writer does not block the reader. The
// same page tells the runner about the job, for the case that the guardian is killed.
#pragma once

#include <sys/types.h>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include "base/clock.h"
#include "base/fd.h"

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

// Tells whether processes of the job are left, in the way of flock(1): all processes of the job inherit the write end of a pipe.
// A process that ends or closes the write end is no longer under the lock. The read end hangs up when no process holds the write
// end.

class InheritedPipe {
 public:
  // Returns the write end. The job inherits it, and then the caller closes it. No descriptor: the system has none left.
  Fd open();

  [[nodiscard]] int fd() const
  {
    return m_pipe.get();
  }  // the read end: POLLHUP: no process holds the pipe; -1: not opened
  [[nodiscard]] bool is_held() const;

  // Sends KILL to the holders in the session in which the pipe was opened and in the session that the job's main process may have
  // made, until no holder is left or kill_attempt_time is over. Holders in other sessions are daemons and stay untouched.
  void kill_all(pid_t main) const;

 private:
  Fd m_pipe;
  pid_t m_session = 0;
};

}  // namespace rlock
