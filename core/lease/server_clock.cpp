// SPDX-License-Identifier: Apache-2.0
#include "lease/server_clock.h"

#include "base/duration.h"
#include "lock/validity.h"

#include <algorithm>

namespace rlock {

Millis clock_step(const ClockSample& before, const ClockSample& now)
{
  const std::chrono::nanoseconds server = now.server - before.server;
  const auto least = now.sent_at - before.heard_at;
  const auto most = now.heard_at - before.sent_at;
  if (server > most) {
    return std::chrono::floor<Millis>(server - most);
  }
  return server < least ? std::chrono::ceil<Millis>(server - least) : Millis{0};
}

Millis lease_reduction(const ClockSample& before, const ClockSample& now, Millis ttl)
{
  const auto between = std::chrono::ceil<Millis>(now.sent_at - before.sent_at);
  const Millis ahead = clock_step(before, now);
  if (ahead <= Millis{0} || between <= Millis{0}) {
    return Millis{0};
  }
  const double rate = static_cast<double>(ahead.count()) / static_cast<double>(between.count());
  const double whole = std::min(rate, 1.0) * static_cast<double>(ttl.count());
  return std::clamp(Millis{static_cast<std::int64_t>(whole)} - drift_allowed(ttl), Millis{0}, ttl / 3);
}

std::string clock_step_text(Millis ahead, Millis ttl)
{
  const Millis by = std::chrono::abs(ahead);
  if (by <= drift_allowed(ttl)) {
    return "";
  }
  const Millis about = by < std::chrono::seconds(2) ? by : Millis(std::chrono::round<std::chrono::seconds>(by));
  return ": the server's clock went " + show_roughly(about) + (ahead > Millis{0} ? " ahead of ours" : " back");
}

}  // namespace rlock
