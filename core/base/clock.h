// SPDX-License-Identifier: Apache-2.0
// The clock for leases: CLOCK_BOOTTIME (clock_gettime(2)). This clock goes on while the machine is suspended, as the server's
// clock does. steady_clock stops then, so that an expired lease would look valid.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include <poll.h>

namespace rlock {

using Millis = std::chrono::milliseconds;

struct BootTime {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<BootTime>;
  static constexpr bool is_steady = true;
};
using Instant = BootTime::time_point;

constexpr Instant far_future = Instant::max();

class StopToken;
enum class Wake { due, stopped };

// A source of time. Thread-safe. Tests pass clocks of their own.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Instant now() const = 0;
  // Returns at `when` or when `stop` is requested, whichever is first.
  virtual Wake sleep_until(Instant when, const StopToken& stop) const = 0;
};

class BootClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override;
  Wake sleep_until(Instant when, const StopToken& stop) const override;
};

// The timeout for poll(2) in ms, rounded up so that a wait does not end early; 0 when the deadline has passed, -1 for
// far_future.
int poll_timeout(Instant now, Instant deadline);

// poll(2) until the deadline, to the microsecond. The results are in `waits`.
void poll_until(std::span<pollfd> waits, Instant now, Instant deadline);

// The wall clock in milliseconds since 1970, to show and to record times. No decision may depend on the wall clock.
std::int64_t wall_clock_ms();

}  // namespace rlock
