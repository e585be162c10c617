// SPDX-License-Identifier: Apache-2.0
// One reading of a server's clock.
#pragma once

#include "base/clock.h"

#include <chrono>

namespace rlock {

// The server read its clock between `sent_at` and `heard_at`.
struct ClockSample {
  Instant sent_at;                   // when this host sent the request
  Instant heard_at;                  // when this host got the answer
  std::chrono::microseconds server;  // since 1970
};

}  // namespace rlock
