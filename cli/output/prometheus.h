// SPDX-License-Identifier: Apache-2.0
// Locks in the text exposition format, for a textfile collector of Prometheus.
#pragma once

#include "lock/store.h"

#include <cstdint>
#include <span>
#include <string>

namespace rlock::cli {

// One metric family after the other, with HELP and TYPE and a sample for each lock whose value is known. All are gauges, also the
// numbers of past runs: the log from which they are counted has an end, so they fall as well, and rate() would mislead. Counters
// would need further commands in each release.
std::string prometheus_text(std::span<const LockState> states, std::int64_t now_ms);

// The family that tells whether the server has answered; a collector reads it before the others.
std::string prometheus_up(bool is_up);

}  // namespace rlock::cli
