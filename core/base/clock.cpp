// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include "base/stop.h"

#include <algorithm>
#include <climits>
#include <ctime>

#include <poll.h>

namespace rlock {

Instant BootClock::now() const
{
  timespec ts{};
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return Instant{std::chrono::seconds{ts.tv_sec} + std::chrono::nanoseconds{ts.tv_nsec}};
}

// The timeout of poll(2) stops while the machine is suspended, so the loop compares the time after each return. After a
// resume a wait may be late, never early.
Wake BootClock::sleep_until(Instant when, const StopToken& stop) const
{
  for (;;) {
    const Instant current = now();
    if (stop.requested()) {
      return Wake::stopped;
    }
    if (current >= when) {
      return Wake::due;
    }
    pollfd wait{.fd = stop.fd(), .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, poll_timeout(current, when));
  }
}

int poll_timeout(Instant now, Instant deadline)
{
  if (deadline == far_future) {
    return -1;
  }
  if (deadline <= now) {
    return 0;
  }
  const auto left = std::chrono::ceil<Millis>(deadline - now).count();
  return static_cast<int>(std::min<std::int64_t>(left, INT_MAX));
}

void poll_until(std::span<pollfd> waits, Instant now, Instant deadline)
{
  if (deadline == far_future) {
    ::poll(waits.data(), waits.size(), -1);
    return;
  }
  const auto left = std::max(deadline - now, Instant::duration::zero());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
  ::ppoll(waits.data(), waits.size(), &timeout, nullptr);
}

std::int64_t wall_clock_ms()
{
  using namespace std::chrono;
  return duration_cast<Millis>(system_clock::now().time_since_epoch()).count();
}

}  // namespace rlock
