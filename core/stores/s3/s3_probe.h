// SPDX-License-Identifier: Apache-2.0
// Finds out whether a store compares on write. One that ignores the conditions grants each lock to everybody. Private to stores/s3.
#pragma once

#include <string>
#include "base/clock.h"
#include "base/result.h"
#include "stores/s3/s3_connection.h"

namespace rlock::s3 {

// Writes an object of its own with conditions that do not hold, and with one that holds for one of several writers at once, and deletes it.
// Returns what is wrong; empty: nothing. A race it can miss.
Result<std::string> probe_conditions(Connection& connection, Rng& rng, const CallLimits& limit);

// The same, unless a client has found the store fit in the last day, which an object below the prefix tells. ErrorCode::config: it is
// unfit.
Result<Done> check_conditions(Connection& connection, Rng& rng, const CallLimits& limit);

}  // namespace rlock::s3
