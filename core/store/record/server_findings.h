// SPDX-License-Identifier: Apache-2.0
// What `rlock doctor` says of every database in the same words. The advice is the adapter's, because it names the database's own
// settings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include "lock/abilities.h"

namespace rlock::record {

Finding ok(std::string_view check, std::string found);
Finding warn(std::string_view check, std::string found, std::string advice);
Finding fail(std::string_view check, std::string found, std::string advice);

Finding encryption_finding(bool uses_tls, bool is_this_host, std::string advice);

// Only the server's clock decides about leases. A difference makes the times that people read wrong. In ms: how far the server's
// clock is ahead of this host's, and how long the question took.
Finding clock_finding(std::int64_t ahead_ms, std::int64_t unsure_ms, std::string advice);

}  // namespace rlock::record
