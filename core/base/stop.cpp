// SPDX-License-Identifier: Apache-2.0
#include "base/stop.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace rlock {

bool StopToken::requested() const
{
  if (m_fd < 0) {
    return false;
  }
  pollfd look{.fd = m_fd, .events = POLLIN, .revents = 0};
  return ::poll(&look, 1, 0) == 1;
}

AnyStop::AnyStop() : m_set(::epoll_create1(EPOLL_CLOEXEC))
{
  if (!m_set) {
    throw std::system_error(errno, std::generic_category(), "epoll_create1");
  }
}

void AnyStop::add(StopToken stop)
{
  epoll_event readable{.events = EPOLLIN, .data = {.fd = stop.fd()}};
  if (::epoll_ctl(m_set.get(), EPOLL_CTL_ADD, stop.fd(), &readable) != 0) {
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
}

void AnyStop::remove(StopToken stop) { ::epoll_ctl(m_set.get(), EPOLL_CTL_DEL, stop.fd(), nullptr); }

StopSource::StopSource() : m_event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
  if (!m_event) {
    throw std::system_error(errno, std::generic_category(), "eventfd");
  }
}

void StopSource::request()
{
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(m_event.get(), &one, sizeof one);
}

void StopSource::withdraw()
{
  std::uint64_t requests = 0;
  [[maybe_unused]] const auto drained = ::read(m_event.get(), &requests, sizeof requests);
}

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
