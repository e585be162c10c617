// SPDX-License-Identifier: Apache-2.0
// A clock that only the test moves, or that moves by the same step each time it is read.
#pragma once

#include "base/clock.h"

namespace rlock::test {

class SteppedClock final : public Clock {
 public:
  explicit SteppedClock(Millis per_reading = Millis{0}) : m_per_reading(per_reading) {}
  [[nodiscard]] Instant now() const override { return m_now += m_per_reading; }
  Wake sleep_until(Instant, const StopToken&) const override { return Wake::due; }
  void add(Millis time) { m_now += time; }

 private:
  const Millis m_per_reading;
  mutable Instant m_now{};
};

}  // namespace rlock::test
