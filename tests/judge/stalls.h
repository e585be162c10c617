// SPDX-License-Identifier: Apache-2.0
// Measures when the machine does not run a thread that wants to run: every time limit is late by as much.
#pragma once

#include "judge/records.h"

#include <atomic>
#include <thread>
#include <vector>

namespace rlock::judge {

class StallMeter {
 public:
  StallMeter();
  ~StallMeter() { stop(); }
  StallMeter(const StallMeter&) = delete;
  StallMeter& operator=(const StallMeter&) = delete;

  // Ends the measurement; then stalls() may be called.
  void stop();
  [[nodiscard]] const std::vector<Stall>& stalls() const { return m_stalls; }

 private:
  void measure();

  std::atomic<bool> m_stop = false;
  std::vector<Stall> m_stalls;
  std::thread m_thread;  // last: it uses the others
};

}  // namespace rlock::judge
