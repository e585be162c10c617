// SPDX-License-Identifier: Apache-2.0
#include "lease/server_clock.h"

#include "base/defaults.h"
#include "base/duration.h"
#include "lock/lease_budget.h"

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
  const Millis step = clock_step(before, now);
  if (step <= Millis{0} || between <= Millis{0}) {
    return Millis{0};
  }
  const double rate = static_cast<double>(step.count()) / static_cast<double>(between.count());
  const double over_ttl = std::min(rate, 1.0) * static_cast<double>(ttl.count());
  return std::clamp(Millis{static_cast<std::int64_t>(over_ttl)} - drift_allowed(ttl), Millis{0}, renewal_period(ttl));
}

std::string clock_step_text(Millis step, Millis ttl)
{
  const Millis by = std::chrono::abs(step);
  if (by <= drift_allowed(ttl)) {
    return "";
  }
  const Millis about = by < std::chrono::seconds(2) ? by : Millis(std::chrono::round<std::chrono::seconds>(by));
  return ": the server's clock jumped " + show_roughly(about) + (step > Millis{0} ? " ahead" : " back");
}

}  // namespace rlock
