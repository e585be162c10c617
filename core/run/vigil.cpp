// SPDX-License-Identifier: Apache-2.0
#include "run/vigil.h"

#include "base/text.h"
#include "lock/validity.h"
#include "run/outcome.h"
#include "run/prepared_job.h"

#include <algorithm>
#include <system_error>

namespace rlock {
namespace {

constexpr int tries = 3;  // of a renewal before the job begins, each on a fresh connection

}  // namespace

Vigil::Vigil(const RunRequest& request, const World& world) : m_request(request), m_world(world)
{
  if (request.names.size() > 1) {
    m_wakers.emplace();
    m_wakers->any.add(world.signals.stop());
    m_wakers->any.add(m_wakers->lost.token());
  }
}

void Vigil::add(Holding& holding)
{
  m_held.push_back(&holding);
  m_due = std::min(m_due, holding.watch_from());
}

// No thread or descriptor to be had: there may be one in time.
void Vigil::watch()
{
  m_due = far_future;
  try {
    for (Holding* holding : m_held) {
      if (!holding->is_watched() && !holding->verdict()) {
        begin(*holding);
      }
    }
  } catch (const std::system_error& refused) {
    m_world.log.detail("cannot watch the lease yet: " + refused.code().message());
    m_due = m_world.clock.now() + m_request.ttl / 50;
  }
}

void Vigil::begin(Holding& holding)
{
  holding.keep();
  try {
    m_wakers->any.add(Stop(holding.verdict_fd()));
  } catch (const std::system_error&) {
    holding.unwatch();
    throw;
  }
}

void Vigil::rest()
{
  for (Holding* holding : m_held) {
    if (!holding->is_watched()) {
      continue;
    }
    m_wakers->any.remove(Stop(holding->verdict_fd()));
    holding->unwatch();
    m_due = m_world.clock.now();
    if (holding->verdict()) {
      m_wakers->lost.request();
    }
  }
}

std::optional<std::string> Vigil::loss()
{
  for (Holding* holding : m_held) {
    if (const auto& verdict = holding->verdict()) {
      return words_for(*verdict, printable(holding->name().text()));
    }
  }
  return std::nullopt;
}

// What had to wait for the others is renewed once more: so it is proven to be ours, and a fixed lease counts from here.
// The last one has just been granted.
Result<Done> Vigil::settle()
{
  rest();
  for (Holding* holding : m_held) {
    const bool is_young = holding == m_held.back() || m_world.clock.now() < holding->watch_from();
    if (!is_young && !holding->verdict()) {
      refresh(*holding);
    }
    if (holding->verdict()) {
      return Done{};
    }
  }
  const Instant now = m_world.clock.now();
  const bool enough = std::all_of(m_held.begin(), m_held.end(), [&](const Holding* holding) {
    return leaves_enough(holding->kept_at(), m_request.ttl, now);
  });
  return enough ? Result(Done{}) : too_slow();
}

void Vigil::refresh(Holding& holding)
{
  const Instant give_up = holding.valid_until() - stop_leads(m_request).signal;
  const Stop stop = m_world.signals.stop();
  for (int i = 0; i < tries && !stop.requested(); ++i) {
    const Instant now = m_world.clock.now();
    holding.renew({.deadline = std::min(now + m_request.server.timeout, std::max(give_up, now)), .stop = stop});
    const bool unknown = holding.verdict() && std::holds_alternative<Unsure>(*holding.verdict());
    if (!unknown) {
      return;
    }
  }
}

}  // namespace rlock
