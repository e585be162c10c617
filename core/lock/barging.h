// SPDX-License-Identifier: Apache-2.0
// Decides when the first waiter must poll because a foreign client barges: a client that has just unlocked may lock again before
// its message reaches the waiter. A pure state machine: the caller passes the time. Not thread-safe.
#pragma once

#include "base/clock.h"

#include <optional>

namespace rlock {

// A waiter that loses to foreign clients for `patience` polls every millisecond for `polling_time`, so that one of its
// requests arrives between an unlock and the next lock.
class Barging {
 public:
  // Call this after each refusal. `behind_foreigner`: the waiter is first, and the holder is a foreign client.
  // `was_notified`: a message made the waiter ask. True: the waiter must ask again in a millisecond.
  bool must_poll(Instant now, bool behind_foreigner, bool was_notified)
  {
    if (!behind_foreigner) {
      m_losing_since.reset();
      return false;
    }
    if (was_notified && !m_losing_since) {
      m_losing_since = now;
    } else if (m_losing_since && now - *m_losing_since > patience) {
      m_poll_until = now + polling_time;
      m_losing_since.reset();
    }
    return now < m_poll_until;
  }

 private:
  static constexpr Millis patience{300};
  static constexpr Millis polling_time{50};
  std::optional<Instant> m_losing_since;
  Instant m_poll_until{};
};

}  // namespace rlock
