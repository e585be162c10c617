// SPDX-License-Identifier: Apache-2.0
// How long several leases last together: until the first of them ends.
#pragma once

#include "base/clock.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace rlock {

// Thread-safe: each lease is moved by a watchdog of its own.
class CommonLease {
 public:
  // `moved` is called with the common end, never by two threads at once.
  CommonLease(std::vector<Instant> ends, std::function<void(Instant)> moved)
      : m_ends(std::move(ends)), m_moved(std::move(moved))
  {
  }

  void move(std::size_t which, Instant end)
  {
    const std::lock_guard guard(m_mutex);
    m_ends[which] = end;
    m_moved(*std::min_element(m_ends.begin(), m_ends.end()));
  }

 private:
  std::mutex m_mutex;
  std::vector<Instant> m_ends;  // guarded by m_mutex
  const std::function<void(Instant)> m_moved;
};

}  // namespace rlock
