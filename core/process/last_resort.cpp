// SPDX-License-Identifier: Apache-2.0
#include "process/last_resort.h"

#include "base/stop.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

namespace rlock {
namespace {

// Numbers that scripts do not use for their own files. A low limit on descriptors allows only the second.
constexpr std::array lowest_numbers{100, 20};

// Returns 0, or why the job does not get the descriptor.
int inherit(int fd)
{
  for (const int lowest : lowest_numbers) {
    if (::fcntl(fd, F_DUPFD, lowest) >= 0) {
      return 0;
    }
  }
  return errno == EINVAL ? EMFILE : errno;  // EINVAL: the limit allows no number of that size
}

}  // namespace

LastResort::LastResort()
{
  make_pipe();
  make_timer();
}

void LastResort::make_pipe()
{
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) == 0) {
    m_inherited = Fd(ends[0]);
    m_held = Fd(ends[1]);
  } else {
    m_refused.pipe = errno;
  }
}

void LastResort::make_timer()
{
  sigevent kill{};
  kill.sigev_notify = SIGEV_SIGNAL;
  kill.sigev_signo = SIGKILL;
  timer_t timer{};
  if (::timer_create(CLOCK_BOOTTIME, &kill, &timer) == 0) {
    m_timer = timer;
  } else {
    m_refused.timer = errno;
  }
}

LastResort::~LastResort()
{
  if (m_timer) {
    ::timer_delete(*m_timer);
  }
}

void LastResort::cover_this_process(Grouping grouping)
{
  const int fd = m_inherited.get();
  if (fd < 0) {
    return;
  }
  const f_owner_ex owner{.type = grouping == Grouping::own ? F_OWNER_PGRP : F_OWNER_PID, .pid = ::getpid()};
  const bool is_armed = ::fcntl(fd, F_SETSIG, SIGKILL) == 0 && ::fcntl(fd, F_SETOWN_EX, &owner) == 0 &&
                        ::fcntl(fd, F_SETFL, O_ASYNC) == 0;
  m_refused.pipe = is_armed ? inherit(fd) : errno;
}

void LastResort::set_due(Instant due)
{
  if (due == m_due || !m_timer) {
    return;
  }
  m_due = due;
  itimerspec once{};  // all zero: never
  if (due != far_future) {
    once.it_value = to_timespec(due);
  }
  if (::timer_settime(*m_timer, TIMER_ABSTIME, &once, nullptr) != 0) {
    m_refused.timer = errno;
  }
}

void LastResort::disarm()
{
  set_due(far_future);
  if (m_inherited) {
    ::fcntl(m_inherited.get(), F_SETFL, 0);
  }
}

}  // namespace rlock
