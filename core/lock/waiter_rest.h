// SPDX-License-Identifier: Apache-2.0
// What a waiter does between two requests: it hears messages, and lets its caller prepare a job, show the wait and stop the
// holder. Not thread-safe.
#pragma once

#include "lock/lock_candidates.h"
#include "lock/wait_notifications.h"
#include "lock/waiting.h"

namespace rlock {

class WaiterRest {
 public:
  // All references must outlive this.
  WaiterRest(const WaitPolicy& policy, const Clock& clock, StopToken stop, WaitObserver& observer,
             LockCandidates& candidates, WaitNotifications& notifications)
      : m_policy(policy),
        m_clock(clock),
        m_stop(stop),
        m_observer(observer),
        m_candidates(candidates),
        m_notifications(notifications)
  {
  }

  // Notes that the waiter is first in line since the request that was sent at `sent_at`.
  void first_in_line(Instant sent_at);
  // Returns when a request is due, when a message has come, or at `until`, the end of the wait.
  Wake rest(Instant until);

 private:
  void call_observer(Instant now);
  [[nodiscard]] Instant stopper_due() const;
  void stop_holder();
  void receive();

  const WaitPolicy& m_policy;
  const Clock& m_clock;
  const StopToken m_stop;
  WaitObserver& m_observer;
  LockCandidates& m_candidates;
  WaitNotifications& m_notifications;
  Instant m_prepare_at = far_future;  // when the observer may prepare its job; set while the waiter is first
};

}  // namespace rlock
