// SPDX-License-Identifier: Apache-2.0
#include "lock/wait_notifications.h"

namespace rlock {
namespace {

constexpr Millis deaf_pause{200};  // between tries where listening is not possible

}  // namespace

void WaitNotifications::open(const CallLimits& limit)
{
  if (!m_listener) {
    auto listener = m_store.listen(m_specs, m_owner, limit);
    if (!listener) {
      m_places.ask_all_by(m_clock.now() + deaf_pause);
      return;
    }
    m_listener = *std::move(listener);
    m_listens_for = m_owner;
  }
  const Instant now = m_clock.now();
  for (LockCandidate& place : m_places) {
    const bool rests = place.in_line && now < place.due_at();
    if (rests && m_listener) {
      make_sure(place, limit);
    }
  }
}

// Something may have been said before we listened.
void WaitNotifications::make_sure(LockCandidate& place, const CallLimits& limit)
{
  if (!place.is_sure) {
    place.is_sure = true;
    const auto queued = m_store.is_queued(place.spec, m_owner, limit);
    if (!queued || !*queued) {
      place.look_at = m_clock.now();
      return;
    }
  }
  if (place.must_hear_releases && !place.hears_releases) {
    hear_releases(place, limit);
  }
}

void WaitNotifications::hear_releases(LockCandidate& place, const CallLimits& limit)
{
  place.hears_releases = true;
  place.look_at = m_clock.now();
  if (!m_listener->hear_releases(place.which, limit)) {
    close();
    place.look_at += deaf_pause;
  }
}

void WaitNotifications::close()
{
  m_listener.reset();
  for (LockCandidate& place : m_places) {
    place.became_deaf();
  }
}

bool WaitNotifications::hear()
{
  const auto hints = m_listener->heard(m_clock);
  const Instant now = m_clock.now();
  if (!hints) {
    close();
    m_places.ask_all_at(now);  // whatever cut us off may have touched the queues as well
    return false;
  }
  bool is_first = false;
  for (LockCandidate& place : m_places) {
    const Hint& hint = (*hints)[place.which];
    place.told(hint, now);
    is_first = is_first || (hint.next && !hint.look_in);
  }
  return is_first;
}

}  // namespace rlock
