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

Vigil::Vigil(const RunRequest& request, const RunContext& context) : m_request(request), m_context(context)
{
  if (request.names.size() > 1) {
    m_wakers.emplace();
    m_wakers->any.add(context.signals.stop());
    m_wakers->any.add(m_wakers->lost.token());
  }
}

void Vigil::add(LockSession& session)
{
  m_held.push_back(&session);
  m_due = std::min(m_due, session.watch_from());
}

// No thread or descriptor to be had: there may be one in time.
void Vigil::watch()
{
  m_due = far_future;
  try {
    for (LockSession* session : m_held) {
      if (!session->is_watched() && !session->lease_event()) {
        begin(*session);
      }
    }
  } catch (const std::system_error& refused) {
    m_context.log.detail("cannot watch the lease yet: " + refused.code().message());
    m_due = m_context.clock.now() + m_request.ttl / 50;
  }
}

void Vigil::begin(LockSession& session)
{
  session.keep();
  try {
    m_wakers->any.add(StopToken(session.event_fd()));
  } catch (const std::system_error&) {
    session.unwatch();
    throw;
  }
}

void Vigil::rest()
{
  for (LockSession* session : m_held) {
    if (!session->is_watched()) {
      continue;
    }
    m_wakers->any.remove(StopToken(session->event_fd()));
    session->unwatch();
    m_due = m_context.clock.now();
    if (session->lease_event()) {
      m_wakers->lost.request();
    }
  }
}

std::optional<std::string> Vigil::loss()
{
  for (LockSession* session : m_held) {
    if (const auto& lease_event = session->lease_event()) {
      return loss_text(*lease_event, printable(session->name().text()));
    }
  }
  return std::nullopt;
}

// What had to wait for the others is renewed once more: so it is proven to be ours, and a fixed lease counts from here.
// The last one has just been granted.
Result<Done> Vigil::settle()
{
  rest();
  for (LockSession* session : m_held) {
    const bool is_young = session == m_held.back() || m_context.clock.now() < session->watch_from();
    if (!is_young && !session->lease_event()) {
      refresh(*session);
    }
    if (session->lease_event()) {
      return Done{};
    }
  }
  const Instant now = m_context.clock.now();
  const bool enough = std::all_of(m_held.begin(), m_held.end(), [&](const LockSession* session) {
    return leaves_enough(session->kept_at(), m_request.ttl, now);
  });
  return enough ? Result(Done{}) : too_slow();
}

void Vigil::refresh(LockSession& session)
{
  const Instant give_up = session.valid_until() - stop_leads(m_request).signal;
  const StopToken stop = m_context.signals.stop();
  for (int i = 0; i < tries && !stop.requested(); ++i) {
    const Instant now = m_context.clock.now();
    session.renew({.deadline = std::min(now + m_request.server.timeout, std::max(give_up, now)), .stop = stop});
    const bool unknown = session.lease_event() && std::holds_alternative<Unconfirmed>(*session.lease_event());
    if (!unknown) {
      return;
    }
  }
}

}  // namespace rlock
