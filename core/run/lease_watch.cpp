// SPDX-License-Identifier: Apache-2.0
#include "run/lease_watch.h"

#include <system_error>

namespace rlock {

LeaseWatch::LeaseWatch(const RunRequest& request, const RunContext& context, LockSet& lock_set)
    : m_request(request),
      m_context(context),
      m_lock_set(lock_set),
      m_due(lock_set.watch_from()),
      m_lease(lock_set.leases(), [this](Instant until) { m_lock_set.prepared_job.move_deadline(until); })
{
}

LeaseWatch::~LeaseWatch()
{
  for (LockSession& session : m_lock_set.sessions) {
    session.unwatch();  // what the watchdogs call is ours
  }
}

// No thread or descriptor to be had (a job that forks up to a limit): there may be one in time.
void LeaseWatch::begin()
{
  try {
    for (std::size_t i = 0; i < m_lock_set.sessions.size(); ++i) {
      if (!m_lock_set.sessions[i].is_watched()) {
        m_lock_set.sessions[i].watch([this, i](Instant until) { m_lease.move(i, until); });
      }
    }
    m_due = far_future;
  } catch (const std::system_error& refused) {
    m_context.log.detail("cannot watch the lease yet: " + refused.code().message());
    m_due = m_context.clock.now() + m_request.ttl / 50;
  }
}

void LeaseWatch::rest()
{
  m_due = m_context.clock.now();
  for (LockSession& session : m_lock_set.sessions) {
    session.rest();
    m_due = session.lease_event() ? far_future : m_due;
  }
}

}  // namespace rlock
