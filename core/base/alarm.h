// SPDX-License-Identifier: Apache-2.0
// A timer as a descriptor for poll(2). Unlike a timeout of poll(2), the timer is on time after a suspend.
#pragma once

#include "base/clock.h"
#include "base/fd.h"

#include <ctime>

namespace rlock {

// The time for a timer on CLOCK_BOOTTIME. Never zero, because zero disarms a timer.
timespec to_timespec(Instant when);

class Alarm {
 public:
  Alarm();

  // Readable once the alarm is due; -1: there was no free descriptor.
  [[nodiscard]] int fd() const { return m_timer.get(); }

  // Makes the descriptor unreadable until `due`; far_future: for ever. One thread at a time may call this.
  void set(Instant due);

 private:
  Fd m_timer;
  Instant m_due{};
};

}  // namespace rlock
