// SPDX-License-Identifier: Apache-2.0
// What `rlock doctor` asks a store of objects, and what the answers mean for locks. Private to stores/s3.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include "base/defaults.h"
#include "lock/finding.h"
#include "stores/s3/s3_connection.h"

namespace rlock::s3 {

struct CheckedFacts {
  std::string server;            // what it calls itself
  std::string wrong_conditions;  // empty: it compares on write
  std::string credentials;       // where they come from
  bool uses_tls = false;
  bool is_this_host = false;
  Millis clock_skew{0};        // that the URL allows
  Millis clock_difference{0};  // of the hosts that answered: at least so much
  std::int64_t ahead_ms = 0;   // of the store's clock
  std::int64_t unsure_ms = 0;
};

// A pure function.
std::vector<Finding> findings_of(const CheckedFacts& facts);

// When this host sent and got an answer, and the second that the store named.
struct DateSample {
  Millis sent, heard, date;
};
// How far the clocks of the hosts that gave these dates are apart at least. A pure function.
Millis least_difference(std::span<const DateSample> samples);

// LockStore::check_server.
Result<std::vector<Finding>> check_server(Connection& connection, Rng& rng, const CallLimits& limit);

}  // namespace rlock::s3
