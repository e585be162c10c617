// SPDX-License-Identifier: Apache-2.0
#include "lock/waiter_rest.h"

#include <algorithm>
#include <array>

#include <poll.h>

namespace rlock {
namespace {

// The first waiter prepares its job this long after the job before has begun, because both may share a core. Measured with
// 200 waiters: a tenth less time from job to job if jobs take 3 ms or 10 ms; a tenth more if they take no time.
constexpr std::chrono::microseconds preparation_delay{1500};

}  // namespace

void WaiterRest::first_in_line(Instant sent_at) { m_prepare_at = sent_at + preparation_delay; }

Wake WaiterRest::rest(Instant until)
{
  if (m_notifications.is_open()) {
    receive();  // messages that came with the reply to the subscription are read already: poll does not see them
  }
  for (;;) {
    const Instant now = m_clock.now();
    const Instant end = std::min(m_candidates.next_due(), until);
    call_observer(now);
    if (now >= end) {
      return Wake::due;  // a request looks at the stop token first
    }
    if (now >= stopper_due()) {
      stop_holder();
      continue;
    }
    std::array<pollfd, 2> waits{pollfd{.fd = m_stop.fd(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = m_notifications.fd(), .events = POLLIN, .revents = 0}};
    poll_until(waits, now, std::min({end, m_observer.due(), m_prepare_at, stopper_due()}));
    if (waits[0].revents != 0) {
      return Wake::stopped;
    }
    if (waits[1].revents != 0) {
      receive();
    }
  }
}

void WaiterRest::call_observer(Instant now)
{
  if (now >= m_observer.due()) {
    m_observer.tick();
  }
  if (now >= m_prepare_at) {
    m_prepare_at = far_future;
    m_observer.next_in_line();
  }
}

Instant WaiterRest::stopper_due() const { return m_policy.stopper != nullptr ? m_policy.stopper->due() : far_future; }

void WaiterRest::stop_holder()
{
  if (m_policy.stopper->step(m_stop)) {
    m_candidates.ask_all_by(m_clock.now());
  }
}

void WaiterRest::receive()
{
  if (m_notifications.receive()) {
    first_in_line(m_clock.now());
  }
}

}  // namespace rlock
