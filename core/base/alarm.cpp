// SPDX-License-Identifier: Apache-2.0
#include "base/alarm.h"

#include <algorithm>

#include <sys/timerfd.h>

namespace rlock {

timespec to_timespec(Instant when)
{
  const auto since = std::max(when.time_since_epoch(), Instant::duration{1});
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  return {.tv_sec = seconds.count(), .tv_nsec = (since - seconds).count()};
}

Alarm::Alarm() : m_timer(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {}

void Alarm::set(Instant due)
{
  if (due == m_due) {
    return;
  }
  m_due = due;
  const itimerspec once{{0, 0}, to_timespec(due)};
  ::timerfd_settime(m_timer.get(), TFD_TIMER_ABSTIME, &once, nullptr);
}

}  // namespace rlock
