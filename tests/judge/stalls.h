// SPDX-License-Identifier: Apache-2.0
// Measures when something takes longer than it should: every time limit that depends on it is late by as much.
#pragma once

#include "judge/records.h"

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace rlock::judge {

class StallMeter {
 public:
  // Calls `act` every few milliseconds. It should take no longer than `expected`.
  StallMeter(std::function<void()> act, Millis expected);
  ~StallMeter() { stop(); }
  StallMeter(const StallMeter&) = delete;
  StallMeter& operator=(const StallMeter&) = delete;

  // Ends the measurement; then stalls() may be called.
  void stop();
  [[nodiscard]] const std::vector<Stall>& stalls() const { return m_stalls; }

 private:
  void measure(const std::function<void()>& act, Millis expected);

  std::atomic<bool> m_stop = false;
  std::vector<Stall> m_stalls;
  std::thread m_thread;  // last: it uses the others
};

// Whether the machine runs a thread and a process that want to run. Call it while there is only one thread: it forks.
StallMeter machine_stalls();

// Whether the servers answer.
StallMeter server_stalls(Servers& servers);

}  // namespace rlock::judge
