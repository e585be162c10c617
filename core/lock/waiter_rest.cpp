// SPDX-License-Identifier: Apache-2.0
#include "lock/waiter_rest.h"

#include <poll.h>
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace rlock {
namespace {

// The first waiter prepares its job this long after the job before has begun, because both may share a core, and at once where the
// last hold was shorter than QUICK_TURN (lua/lib/waiters.lua). Measured with 200 waiters: a tenth less time from job to job if jobs
// take 3 ms or 10 ms; a fifth more if they take no time.
constexpr std::chrono::microseconds preparation_delay{1500};

constexpr Millis poll_pause{200};  // between requests of a waiter that cannot subscribe

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
    std::array<pollfd, 3> waits{pollfd{.fd = m_stop.fd(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = m_notifications.fd(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = m_observer.fd(), .events = POLLIN, .revents = 0}};
    poll_until(waits, now, std::min({end, m_observer.due(), m_prepare_at, stopper_due()}));
    if (waits[0].revents != 0) {
      return Wake::stopped;
    }
    if (waits[1].revents != 0) {
      receive();
    }
    if (waits[2].revents != 0) {
      m_observer.tick();
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
  switch (m_notifications.receive()) {
    case WaitNotifications::Place::behind: break;
    case WaitNotifications::Place::first: first_in_line(m_clock.now()); break;
    case WaitNotifications::Place::first_of_quick: m_prepare_at = m_clock.now(); break;
  }
}

void WaitNotifications::open_and_check(const CallLimits& limit)
{
  if (!m_listener) {
    auto listener = m_store.listen(m_specs, m_owner, limit);
    if (!listener) {
      m_candidates.ask_all_by(m_clock.now() + poll_pause);
      return;
    }
    m_listener = *std::move(listener);
    m_listens_for = m_owner;
  }
  const Instant now = m_clock.now();
  for (LockCandidate& candidate : m_candidates) {
    const bool rests = candidate.queued && now < candidate.due_at();
    if (rests && m_listener) {
      check(candidate, limit);
    }
  }
}

void WaitNotifications::check(LockCandidate& candidate, const CallLimits& limit)
{
  if (!candidate.queue_checked) {
    candidate.queue_checked = true;
    const auto queued = m_store.is_queued(candidate.spec, m_owner, limit);
    if (!queued || !*queued) {
      candidate.ask_at = m_clock.now();
      return;
    }
  }
  if (candidate.must_hear_releases && !candidate.hears_releases) {
    hear_releases(candidate, limit);
  }
}

void WaitNotifications::hear_releases(LockCandidate& candidate, const CallLimits& limit)
{
  candidate.hears_releases = true;
  candidate.ask_at = m_clock.now();
  if (!m_listener->hear_releases(candidate.which, limit)) {
    close();
    candidate.ask_at += poll_pause;
  }
}

void WaitNotifications::close()
{
  m_listener.reset();
  for (LockCandidate& candidate : m_candidates) {
    candidate.stopped_listening();
  }
}

WaitNotifications::Place WaitNotifications::receive()
{
  const auto hints = m_listener->heard(m_clock);
  const Instant now = m_clock.now();
  if (!hints) {
    close();
    m_candidates.ask_all_at(now);  // whatever cut the connection may have changed the queues as well
    return Place::behind;
  }
  Place place = Place::behind;
  for (LockCandidate& candidate : m_candidates) {
    const Hint& hint = (*hints)[candidate.which];
    candidate.notified(hint, now);
    if (hint.next && !hint.look_in) {
      place = hint.quick ? Place::first_of_quick : std::max(place, Place::first);
    }
  }
  return place;
}

}  // namespace rlock
