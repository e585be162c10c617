// SPDX-License-Identifier: Apache-2.0
// Waits for a condition instead of a time.
#pragma once

#include "base/clock.h"
#include "support/give_up.h"

#include <chrono>
#include <string>
#include <thread>

namespace rlock::test {

// Evaluates the condition every 10 ms. When `timeout` is over, fails the test case and says what was awaited.
template <typename Predicate>
void wait_until(Predicate&& holds, const std::string& what, Millis timeout = std::chrono::seconds(30))
{
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) {
      give_up("waited " + std::to_string(timeout.count()) + " ms in vain until " + what);
    }
    std::this_thread::sleep_for(Millis(10));
  }
}

}  // namespace rlock::test
