// SPDX-License-Identifier: Apache-2.0
// What `rlock doctor` says of every database in the same words. The advice is the adapter's, because it names the database's own
// settings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "lock/finding.h"

namespace rlock::record {

Finding ok(std::string_view check, std::string found);
Finding warn(std::string_view check, std::string found, std::string advice);
Finding fail(std::string_view check, std::string found, std::string advice);
Finding unknown(std::string_view check, std::string found, std::string advice);

// What each rule says of the facts.
template <typename Facts, typename... Rules>
std::vector<Finding> findings_by(const Facts& facts, Rules... rules)
{
  return {rules(facts)...};
}

// Of the connections that the server has and permits. `advice`: what to raise.
Finding connections_finding(std::int64_t used, std::int64_t most, std::string advice);

Finding encryption_finding(bool uses_tls, bool is_this_host, std::string advice);

// How far the server's clock is ahead of this host's, and how far that may be wrong, because the question took time.
struct ClockDifference {
  std::int64_t ahead_ms;
  std::int64_t unsure_ms;
};
// Of a store where only the server's clock decides about leases. A difference makes the times that people read wrong.
Finding clock_finding(std::int64_t ahead_ms, std::int64_t unsure_ms, std::string advice);
// Of a store that has no clock for locks: the clocks of clients decide when a success of `rlock once` is over. nullopt: unknown.
Finding clients_clock_finding(const std::optional<ClockDifference>& difference);

}  // namespace rlock::record
