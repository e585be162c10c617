// SPDX-License-Identifier: Apache-2.0
// Reads the event logs that the scripts keep on a Redis server.
#pragma once

#include "lock/event_log.h"
#include "server/transport.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

// What was written after the entry `after` ("": all that is left), the oldest first. One round trip.
struct EventLogQuery {
  LockName name;
  std::string after;  // its text
};
Result<std::vector<std::vector<EventLogEntry>>> read_event_logs(Transport& transport,
                                                                std::span<const EventLogQuery> queries,
                                                                const CallLimits& limit);

// The locks whose name matches the glob and that have a trail, sorted.
Result<std::vector<LockName>> find_event_logs(Transport& transport, std::string_view pattern, const PerAnswer& limits);

}  // namespace rlock
