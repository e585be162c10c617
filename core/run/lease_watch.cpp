// SPDX-License-Identifier: Apache-2.0
#include "run/lease_watch.h"

#include <system_error>

namespace rlock {

LeaseWatch::LeaseWatch(const RunRequest& request, const World& world, Tenure& tenure)
    : m_request(request),
      m_world(world),
      m_tenure(tenure),
      m_due(tenure.watch_from()),
      m_lease(tenure.leases(), [this](Instant until) { m_tenure.preparation.move_lifeline(until); })
{
}

LeaseWatch::~LeaseWatch()
{
  for (Holding& holding : m_tenure.holdings) {
    holding.unwatch();  // what the watchdogs call is ours
  }
}

// No thread or descriptor to be had (a job that forks up to a limit): there may be one in time.
void LeaseWatch::begin()
{
  try {
    for (std::size_t i = 0; i < m_tenure.holdings.size(); ++i) {
      if (!m_tenure.holdings[i].is_watched()) {
        m_tenure.holdings[i].watch([this, i](Instant until) { m_lease.move(i, until); });
      }
    }
    m_due = far_future;
  } catch (const std::system_error& refused) {
    m_world.log.detail("cannot watch the lease yet: " + refused.code().message());
    m_due = m_world.clock.now() + m_request.ttl / 50;
  }
}

void LeaseWatch::rest()
{
  m_due = m_world.clock.now();
  for (Holding& holding : m_tenure.holdings) {
    holding.rest();
    m_due = holding.verdict() ? far_future : m_due;
  }
}

}  // namespace rlock
