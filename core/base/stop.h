// SPDX-License-Identifier: Apache-2.0
// "Stop what you are doing": a descriptor that becomes readable and stays so.
//
// A signalfd, an eventfd or a socket can be a Stop, so every wait in rlock is one poll over what it waits
// for and this. Stop does not own the descriptor; whoever made it keeps it open for longer.
#pragma once

#include "base/clock.h"
#include "base/fd.h"

#include <algorithm>

namespace rlock {

class Stop {
 public:
  static constexpr Stop never() { return Stop(-1); }
  explicit constexpr Stop(int readable_fd) : m_fd(readable_fd) {}

  [[nodiscard]] constexpr int fd() const { return m_fd; }  // -1: never; poll(2) ignores that
  [[nodiscard]] bool requested() const;

 private:
  int m_fd;
};

// Asks another thread to stop. Thread-safe.
class StopSource {
 public:
  StopSource();
  void request();
  [[nodiscard]] Stop token() const { return Stop(m_event.get()); }

 private:
  Fd m_event;
};

// Several Stops as one: readable as long as any of them is. Not thread-safe. Throws std::system_error when there is no
// descriptor or memory for it.
class AnyStop {
 public:
  AnyStop();
  void add(Stop stop);  // kept open by the caller until it is removed
  void remove(Stop stop);
  [[nodiscard]] Stop token() const { return Stop(m_set.get()); }

 private:
  Fd m_set;
};

// How long something may take: no longer than `deadline`, and not at all once `stop` is readable.
struct Limit {
  Instant deadline;
  Stop stop;
};

// For work of any number of requests: each has `timeout` for its answer, and all together no longer than `whole`.
struct PerAnswer {
  const Clock& clock;
  Millis timeout;
  Limit whole;
  [[nodiscard]] Limit next() const
  {
    return {.deadline = std::min(clock.now() + timeout, whole.deadline), .stop = whole.stop};
  }
};

}  // namespace rlock
