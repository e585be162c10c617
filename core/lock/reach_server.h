// SPDX-License-Identifier: Apache-2.0
// Tries a server that cannot be reached again. Not thread-safe.
#pragma once

#include <algorithm>
#include "base/clock.h"
#include "base/result.h"
#include "base/stop.h"
#include "lock/waiting.h"

namespace rlock {

// The pauses between attempts. They grow with each failure in a row, and they are random, so that clients that failed together
// do not ask together again.
class RetryPauses {
 public:
  explicit RetryPauses(Rng& rng) : m_rng(rng) {}

  [[nodiscard]] int failures() const { return m_failures; }  // in a row
  void failed() { ++m_failures; }
  void succeeded() { m_failures = 0; }
  // The pause before the next attempt, which begins at `until` at the latest.
  [[nodiscard]] Millis next(Instant now, Instant until)
  {
    const Millis most = std::min(first_pause * (1 << std::min(m_failures, 5)), longest_pause);
    const Millis random = most / 2 + Millis{below(m_rng, static_cast<std::uint64_t>(most.count() / 2) + 1)};
    return until > now ? std::min(random, std::chrono::ceil<Millis>(until - now)) : random;
  }

 private:
  static constexpr Millis first_pause{50};  // doubles up to longest_pause
  static constexpr Millis longest_pause{1000};

  Rng& m_rng;
  int m_failures = 0;
};

// Whether WaitPolicy::server_until allows one more attempt.
inline bool waits_for_server(const WaitPolicy& policy, Instant now)
{
  return policy.server_until && now < *policy.server_until;
}

// Calls `attempt` until it returns a value or an error that no later attempt could mend, or until the time to wait for the server
// is over. ErrorCode::interrupted: `stop` was requested.
template <typename Attempt>
auto reach_server(const WaitPolicy& policy, const Clock& clock, Rng& rng, StopToken stop, ServerObserver& observer,
                  const Attempt& attempt) -> decltype(attempt())
{
  RetryPauses pauses(rng);
  for (;;) {
    auto result = attempt();
    if (result && pauses.failures() > 0) {
      observer.server_answered();
    }
    const Instant now = clock.now();
    if (result || !is_passing(result.error().code) || !waits_for_server(policy, now)) {
      return result;
    }
    observer.server_failed(result.error());
    if (clock.sleep_until(now + pauses.next(now, *policy.server_until), stop) == Wake::stopped) {
      return Error{ErrorCode::interrupted, "interrupted"};
    }
    pauses.failed();
  }
}

}  // namespace rlock
