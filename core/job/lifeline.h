// SPDX-License-Identifier: Apache-2.0
// The instant by which the job must be dead, in a page shared by the runner's watchdog, which moves it, and the
// guardian, which acts on it. Lock-free, so that a stopped or killed writer blocks nobody.
#pragma once

#include "base/clock.h"

#include <atomic>
#include <cstdint>

namespace rlock {

class Lifeline {
 public:
  explicit Lifeline(Instant valid_until);  // throws std::system_error when there is no memory
  ~Lifeline();
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  void move_to(Instant valid_until);  // far_future: never
  [[nodiscard]] Instant valid_until() const;

 private:
  std::atomic<std::int64_t>* m_page;  // MAP_SHARED, survives fork in both
};

}  // namespace rlock
