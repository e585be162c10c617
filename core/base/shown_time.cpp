// SPDX-License-Identifier: Apache-2.0
#include "base/shown_time.h"

#include <ctime>
#include "base/clock.h"

namespace rlock {

ShownZone& shown_zone()
{
  static ShownZone zone = ShownZone::local;
  return zone;
}

std::optional<std::string> shown_time(std::int64_t wall_ms)
{
  auto in_utc = readable_utc(wall_ms);
  if (!in_utc || shown_zone() == ShownZone::utc) {
    return in_utc;
  }
  const std::time_t seconds = wall_ms / 1000;
  std::tm parts{};
  if (::localtime_r(&seconds, &parts) == nullptr) {
    return in_utc;
  }
  char text[40];
  std::string local(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &parts));
  local.insert(local.size() - 2, ":");  // +0100 is +01:00
  return local;
}

}  // namespace rlock
