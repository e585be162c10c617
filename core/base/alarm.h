// SPDX-License-Identifier: Apache-2.0
// An instant to be woken at, as a descriptor for poll(2). Due in time after a suspend too, unlike a timeout of poll(2).
#pragma once

#include "base/clock.h"
#include "base/fd.h"

#include <ctime>

namespace rlock {

// For timers on CLOCK_BOOTTIME. Never zero, which would disarm them.
timespec to_timespec(Instant when);

class Alarm {
 public:
  Alarm();

  // Readable once it is due; -1 when there was no descriptor to be had.
  [[nodiscard]] int fd() const { return m_timer.get(); }

  // Setting it anew also takes back that it was due. far_future: never. One thread at a time may set it.
  void set(Instant due);

 private:
  Fd m_timer;
  Instant m_due{};
};

}  // namespace rlock
