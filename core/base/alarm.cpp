// SPDX-License-Identifier: Apache-2.0
#include "base/alarm.h"

#include <algorithm>
#include <ctime>

#include <sys/timerfd.h>

namespace rlock {
namespace {

timespec to_timespec(Instant when)
{
  const auto since = when.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((since - seconds).count())};
}

}  // namespace

Alarm::Alarm() : m_timer(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {}

void Alarm::set(Instant due)
{
  if (due == m_due) {
    return;
  }
  m_due = due;
  const Instant earliest{std::chrono::nanoseconds{1}};  // zero would mean never
  const itimerspec once{{0, 0}, to_timespec(std::max(due, earliest))};
  ::timerfd_settime(m_timer.get(), TFD_TIMER_ABSTIME, &once, nullptr);
}

}  // namespace rlock
