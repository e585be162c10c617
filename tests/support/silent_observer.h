// SPDX-License-Identifier: Apache-2.0
// What a waiter tells, and nobody hears.
#pragma once

#include "lock/waiting.h"

namespace rlock::test {

class SilentObserver : public WaitObserver {
 public:
  void refused(const Busy&) override {}
  [[nodiscard]] Instant due() const override { return far_future; }
  void tick() override {}
  void next_in_line() override {}
};

}  // namespace rlock::test
