// SPDX-License-Identifier: Apache-2.0
// Locks as a textfile collector of Prometheus reads them (the text exposition format).
#pragma once

#include "lock/store.h"

#include <cstdint>
#include <span>
#include <string>

namespace rlock::cli {

// A family after the other, each with its HELP and TYPE, all locks in each. What is not known has no sample.
std::string prometheus_text(std::span<const LockState> states, std::int64_t now_ms);

}  // namespace rlock::cli
