// SPDX-License-Identifier: Apache-2.0
// Time as leases need it: CLOCK_BOOTTIME, which goes on while the machine is suspended, as the server's
// clock does (clock_gettime(2)). steady_clock would stand still and call a dead lease fresh.
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

// Thread-safe. Tests bring their own.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Instant now() const = 0;
  // Until the instant has come or `stop` is readable, whichever is first.
  virtual Wake sleep_until(Instant when, const StopToken& stop) const = 0;
};

class BootClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override;
  Wake sleep_until(Instant when, const StopToken& stop) const override;
};

// The timeout to hand to poll(2): never negative, rounded up so that a wait is not over before its time,
// -1 for far_future.
int poll_timeout(Instant now, Instant deadline);

// poll(2) until then, to the microsecond. What the poll says of its descriptors stands in them.
void poll_until(std::span<pollfd> waits, Instant now, Instant deadline);

// Wall-clock time of day for people and records, in milliseconds since 1970. Never for a decision.
std::int64_t wall_clock_ms();

}  // namespace rlock
