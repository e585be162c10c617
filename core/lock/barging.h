// SPDX-License-Identifier: Apache-2.0
// What to do about foreign clients that barge: one that has just unlocked may lock again before the word of it
// reaches who is first in line. Pure: time comes in.
#pragma once

#include "base/clock.h"

#include <optional>

namespace rlock {

// Who loses to such for a while asks every millisecond for a moment: one of these questions falls in between.
class Barging {
 public:
  // After each refusal: whether we are first behind a foreign holder, and whether a word had sent us to look.
  // True: ask again in a millisecond.
  bool insists(Instant now, bool behind_foreigner, bool was_told)
  {
    if (!behind_foreigner) {
      m_losing_since.reset();
      return false;
    }
    if (was_told && !m_losing_since) {
      m_losing_since = now;
    } else if (m_losing_since && now - *m_losing_since > patience) {
      m_insist_until = now + insistence;
      m_losing_since.reset();
    }
    return now < m_insist_until;
  }

 private:
  static constexpr Millis patience{300};
  static constexpr Millis insistence{50};
  std::optional<Instant> m_losing_since;
  Instant m_insist_until{};
};

}  // namespace rlock
