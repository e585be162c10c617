// SPDX-License-Identifier: Apache-2.0
// The clock for leases: CLOCK_BOOTTIME (clock_gettime(2)). This clock goes on while the machine is suspended, as the server's
// clock does. steady_clock stops then, so that an expired lease would look valid.
#pragma once

#include <poll.h>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

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

// One reading of a server's clock.

// The server read its clock between `sent_at` and `heard_at`.
struct ClockSample {
  Instant sent_at;                   // when this host sent the request
  Instant heard_at;                  // when this host got the answer
  std::chrono::microseconds server;  // since 1970
};

// Times of the wall clock as text, in UTC. nullopt: the time is before 1970, after the year 9999, or 0 ("not recorded").

std::optional<std::string> iso_utc(std::int64_t wall_ms);       // "2026-11-21T12:00:00.123Z"
std::optional<std::string> readable_utc(std::int64_t wall_ms);  // "2026-11-21 12:00:00 UTC"

// Sources of random numbers. Constructors take one as an argument, so that tests can repeat the numbers. Not thread-safe.

class Rng {
 public:
  virtual ~Rng() = default;
  virtual std::uint64_t next() = 0;  // 64 random bits
};

// Draws from getrandom(2), so that two processes that are forked at the same instant never draw the same numbers.
class SystemRng final : public Rng {
 public:
  std::uint64_t next() override;
};

// A number from 0 to limit - 1; the limit is not 0.
inline std::uint64_t below(Rng& rng, std::uint64_t limit) { return rng.next() % limit; }

// A random (version 4) UUID in lower case, RFC 9562.
std::string random_uuid(Rng& rng);

}  // namespace rlock
