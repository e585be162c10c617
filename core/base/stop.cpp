// SPDX-License-Identifier: Apache-2.0
#include "base/stop.h"

#include <cstdint>
#include <system_error>

#include <poll.h>
#include <sys/eventfd.h>

namespace rlock {

bool Stop::requested() const
{
  if (m_fd < 0) {
    return false;
  }
  pollfd look{.fd = m_fd, .events = POLLIN, .revents = 0};
  return ::poll(&look, 1, 0) == 1;
}

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

}  // namespace rlock
