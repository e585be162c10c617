// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <poll.h>
#include <sys/random.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <ctime>
#include <system_error>
#include "base/stop.h"

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

namespace {

std::optional<std::string> formatted(std::int64_t wall_ms, const char* format)
{
  // ISO 8601 has four digits for the year.
  constexpr std::int64_t year_10000_ms = 253'402'300'800'000;
  if (wall_ms <= 0 || wall_ms >= year_10000_ms) {
    return std::nullopt;
  }
  const std::time_t seconds = wall_ms / 1000;
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) {
    return std::nullopt;
  }
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, format, &parts));
}

}  // namespace

std::optional<std::string> iso_utc(std::int64_t wall_ms)
{
  auto text = formatted(wall_ms, "%Y-%m-%dT%H:%M:%S");
  if (text) {
    char millis[8];
    std::snprintf(millis, sizeof millis, ".%03dZ", static_cast<int>(wall_ms % 1000));
    *text += millis;
  }
  return text;
}

std::optional<std::string> readable_utc(std::int64_t wall_ms) { return formatted(wall_ms, "%Y-%m-%d %H:%M:%S UTC"); }

std::uint64_t SystemRng::next()
{
  std::uint64_t bits = 0;
  while (::getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    if (errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "getrandom");
    }
  }
  return bits;
}

std::string random_uuid(Rng& rng)
{
  const std::uint64_t high = (rng.next() & ~0xf000ULL) | 0x4000ULL;
  const std::uint64_t low = (rng.next() & ~(3ULL << 62)) | (2ULL << 62);
  std::array<char, 37> text{};
  std::snprintf(text.data(), text.size(), "%08x-%04x-%04x-%04x-%012llx", static_cast<unsigned>(high >> 32),
                static_cast<unsigned>(high >> 16 & 0xffff), static_cast<unsigned>(high & 0xffff),
                static_cast<unsigned>(low >> 48), static_cast<unsigned long long>(low & 0xffffffffffffULL));
  return text.data();
}

}  // namespace rlock
