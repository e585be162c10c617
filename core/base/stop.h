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

class StopToken {
 public:
  static constexpr StopToken never() { return StopToken(-1); }
  explicit constexpr StopToken(int readable_fd) : m_fd(readable_fd) {}

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
  [[nodiscard]] StopToken token() const { return StopToken(m_event.get()); }

 private:
  Fd m_event;
};

// Several Stops as one: readable as long as any of them is. Not thread-safe. Throws std::system_error when there is no
// descriptor or memory for it.
class AnyStop {
 public:
  AnyStop();
  void add(StopToken stop);  // kept open by the caller until it is removed
  void remove(StopToken stop);
  [[nodiscard]] StopToken token() const { return StopToken(m_set.get()); }

 private:
  Fd m_set;
};

// How long something may take: no longer than `deadline`, and not at all once `stop` is readable.
struct CallLimits {
  Instant deadline;
  StopToken stop;
};

// For work of any number of requests: each has `timeout` for its answer, and all together no longer than `whole`.
struct PerAnswer {
  const Clock& clock;
  Millis timeout;
  CallLimits whole;
  [[nodiscard]] CallLimits next() const
  {
    return {.deadline = std::min(clock.now() + timeout, whole.deadline), .stop = whole.stop};
  }
};

}  // namespace rlock
