// SPDX-License-Identifier: Apache-2.0
#include "lock/wait_notifications.h"

namespace rlock {
namespace {

constexpr Millis poll_pause{200};  // between requests of a waiter that cannot subscribe

}  // namespace

void WaitNotifications::open(const CallLimits& limit)
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

bool WaitNotifications::receive()
{
  const auto hints = m_listener->heard(m_clock);
  const Instant now = m_clock.now();
  if (!hints) {
    close();
    m_candidates.ask_all_at(now);  // whatever cut the connection may have changed the queues as well
    return false;
  }
  bool is_first = false;
  for (LockCandidate& candidate : m_candidates) {
    const Hint& hint = (*hints)[candidate.which];
    candidate.notified(hint, now);
    is_first = is_first || (hint.next && !hint.look_in);
  }
  return is_first;
}

}  // namespace rlock
