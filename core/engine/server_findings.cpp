// SPDX-License-Identifier: Apache-2.0
#include "engine/server_findings.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include "base/duration.h"

namespace rlock::record {
namespace {

constexpr std::int64_t tolerated_ms = 1000;

}  // namespace

Finding ok(std::string_view check, std::string found) { return {check, CheckStatus::ok, std::move(found), {}}; }
Finding warn(std::string_view check, std::string found, std::string advice)
{
  return {check, CheckStatus::warn, std::move(found), std::move(advice)};
}
Finding fail(std::string_view check, std::string found, std::string advice)
{
  return {check, CheckStatus::fail, std::move(found), std::move(advice)};
}

Finding unknown(std::string_view check, std::string found, std::string advice)
{
  return {check, CheckStatus::unknown, std::move(found), std::move(advice)};
}

Finding connections_finding(std::int64_t used, std::int64_t most, std::string advice)
{
  std::string found = std::to_string(used) + " of " + std::to_string(most);
  return used * 5 >= most * 4 ? warn("connections", std::move(found), std::move(advice))
                              : ok("connections", std::move(found));
}

Finding encryption_finding(bool uses_tls, bool is_this_host, std::string advice)
{
  if (uses_tls) {
    return ok("encryption", "TLS");
  }
  return is_this_host ? ok("encryption", "none, on this host")
                      : warn("encryption", "none: anybody on the way can read and change locks", std::move(advice));
}

Finding clock_finding(std::int64_t ahead_ms, std::int64_t unsure_ms, std::string advice)
{
  const std::int64_t apart = std::max<std::int64_t>(std::abs(ahead_ms) - unsure_ms, 0);
  if (apart <= tolerated_ms) {
    return ok("clock", "at most " + std::to_string(std::abs(ahead_ms) + unsure_ms) + " ms from this host's clock");
  }
  return warn("clock", show_roughly(Millis(apart)) + (ahead_ms > 0 ? " ahead of" : " behind") + " this host's clock",
              std::move(advice));
}

Finding clients_clock_finding(const std::optional<ClockDifference>& difference)
{
  const char* const advice = "have NTP keep all hosts: for rlock once --for, the clocks of its callers decide";
  return difference ? clock_finding(difference->ahead_ms, difference->unsure_ms, advice)
                    : unknown("clock", "the members do not tell theirs", advice);
}

}  // namespace rlock::record
