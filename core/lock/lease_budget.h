// SPDX-License-Identifier: Apache-2.0
// What a holder may do under a lease, and until when. Pure functions: no clock, no network, no threads.
#pragma once

#include "base/clock.h"
#include "base/result.h"

#include <algorithm>
#include <string>

namespace rlock {

// A lease as the store gave it: its length may differ from the ttl that was asked for.
struct LeaseTerm {
  Instant from;  // when it began to count; not later than it began on the server
  Millis length;
};

// For clocks that run at different rates, and for the rounding of a ttl to milliseconds: the allowance of the Redlock
// description.
constexpr Millis drift_allowed(Millis ttl) { return ttl / 100 + Millis{2}; }

// The deadlines of one lease. Each comes before the next:
//
//   from ······ may_begin ······ signal_at ··· kill_at ··· last_resort_at ··· valid_until ··· the end on the server
class LeaseBudget {
 public:
  // `shorter_by`: how much earlier than usual the server may end the lease, because its clock steps ahead.
  constexpr explicit LeaseBudget(const LeaseTerm& lease, Millis shorter_by = Millis{0})
      : m_lease(lease), m_shorter_by(shorter_by)
  {
  }

  [[nodiscard]] constexpr const LeaseTerm& term() const { return m_lease; }

  // The holder may rely on its lock until then: not later than the server's own expiry.
  [[nodiscard]] constexpr Instant valid_until() const
  {
    return m_lease.from + m_lease.length - drift_allowed(m_lease.length) - m_shorter_by;
  }

  // The half-lease rule: a grant that leaves half of the lease or less is too late to begin a job with.
  [[nodiscard]] constexpr bool may_begin(Instant now) const { return valid_until() - now > m_lease.length / 2; }

  // When a job whose lease is not renewed gets its stop signal, so that it has `kill_after` until KILL where the lease is
  // long enough for that. The holder gives up renewing then.
  [[nodiscard]] constexpr Instant signal_at(Millis kill_after) const
  {
    return valid_until() - std::max(kill_lead(), std::min(kill_after, m_lease.length / 6));
  }
  [[nodiscard]] constexpr Instant kill_at() const { return valid_until() - kill_lead(); }
  // The runner kills the job, and a guardian that has not finished; the kernel does where the runner does not. A killed
  // process needs the time that is left to die on a loaded machine.
  [[nodiscard]] constexpr Instant last_resort_at() const { return valid_until() - last_resort_lead(); }

  // Whether the lease explains that a release finds the lock gone: it was over before the answer, and the job had ended before that.
  [[nodiscard]] constexpr bool explains_late_release(Instant job_ended, Instant answered) const
  {
    return job_ended < valid_until() && answered >= valid_until();
  }

 private:
  [[nodiscard]] constexpr Millis last_resort_lead() const
  {
    return std::min(m_lease.length / 6, std::clamp(m_lease.length / 20, Millis{10}, Millis{500}));
  }
  [[nodiscard]] constexpr Millis kill_lead() const { return last_resort_lead() * 3 / 2; }

  LeaseTerm m_lease;
  Millis m_shorter_by;
};

// The advice in the error of a lease that is too short for the server.
inline constexpr const char* give_longer_lease = " (give a longer --ttl or --lease)";

// The error of a caller whose grants are repeatedly too late.
inline Error too_slow()
{
  return {ErrorCode::server_not_ready,
          std::string("the server needs longer to answer than half the lease lasts") + give_longer_lease};
}

}  // namespace rlock
