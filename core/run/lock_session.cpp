// SPDX-License-Identifier: Apache-2.0
#include "run/lock_session.h"

#include "base/text.h"
#include "lock/abilities.h"
#include "lock/validity.h"
#include "run/environment.h"
#include "run/prepared_job.h"

#include <algorithm>

namespace rlock {
namespace {

constexpr Millis unwatched{200};

}  // namespace

LockSession::LockSession(const RunRequest& request, const RunContext& context, std::vector<LockSpec> any_of,
                         Owner owner)
    : m_request(request),
      m_context(context),
      m_any_of(std::move(any_of)),
      m_hold(std::move(owner)),
      m_taken{.which = 0, .owner = m_hold.owner, .grant = {}, .sent_at = {}, .listener = nullptr}
{
}

std::string LockSession::wanted() const
{
  const std::size_t shards = m_request.shards.size();
  return shards == 0 ? printable(name().text())
                     : printable(m_request.names.begin()->text()) + " (" + std::to_string(shards) + " shards)";
}

std::optional<std::size_t> LockSession::shard() const
{
  return m_request.shards.empty() ? std::nullopt : std::optional{m_which};
}

Result<LockSession::Outcome> LockSession::take(const WaitPolicy& policy, StopToken stop, WaitObserver& observer)
{
  auto store = open_store(m_request.server, m_context.clock, stop);
  if (!store) {
    return store.error().fault == ErrorCode::interrupted ? Result<Outcome>(Interrupted{}) : store.error();
  }
  if (m_request.once && (*store)->once_memory() == nullptr) {
    return not_offered("once", m_request.server.shown());
  }
  m_store = *std::move(store);
  auto entry =
      enter(*m_store, m_any_of, m_hold.owner, ancestors(), policy, m_context.clock, m_context.rng, stop, observer);
  if (!entry) {
    return entry.error();
  }
  if (auto* entered = std::get_if<Entered>(&*entry)) {
    m_hold = entered->hold;
    m_taken = std::move(entered->taken);
    m_which = m_taken.which;
    if (m_hold.is_nested()) {
      m_context.log.detail("re-entered " + printable(name().text()) + ", which is now held " +
                               std::to_string(m_taken.grant.count) + " times",
                           {.event = "reentered", .key = name().text()});
    }
    return Outcome{Done{}};
  }
  if (const auto* done = std::get_if<AlreadyDone>(&*entry)) {
    return Outcome{*done};
  }
  const auto* timed_out = std::get_if<TimedOut>(&*entry);
  return timed_out != nullptr ? Outcome{*timed_out} : Outcome{Interrupted{}};
}

// Who runs under one of the locks that will do has what it wants.
std::vector<Ancestor> LockSession::ancestors() const
{
  return m_request.compatibility == Compatibility::flock ? std::vector<Ancestor>{}
                                                         : ancestors_with(m_request.environment, m_any_of);
}

Instant LockSession::valid_until() const { return rlock::valid_until(m_taken.sent_at, spec().ttl); }

Instant LockSession::watch_from() const { return m_taken.sent_at + std::min<Millis>(unwatched, spec().ttl / 6); }

void LockSession::keep()
{
  start_watchdog(
      true, [](Instant) {}, "it is given up");
}

void LockSession::watch(std::function<void(Instant)> moved)
{
  const bool stops = m_request.on_lost == OnLost::stop;
  start_watchdog(m_request.automatic, std::move(moved), stops ? "the job will be stopped" : "its lease ends");
}

void LockSession::start_watchdog(bool renews, std::function<void(Instant)> moved, std::string_view consequence)
{
  m_renews = renews;
  m_watchdog = std::make_unique<Watchdog>(*m_store,
                                          WatchdogOptions{.spec = spec(),
                                                          .owner = m_hold.owner,
                                                          .renews = renews,
                                                          .acquired_at = m_taken.sent_at,
                                                          .kill_margin = stop_leads(m_request).signal,
                                                          .listener = std::move(m_taken.listener),
                                                          .on_moved = std::move(moved),
                                                          .consequence = consequence},
                                          m_context.clock, m_context.log);
}

void LockSession::unwatch()
{
  if (!m_watchdog) {
    return;
  }
  m_watchdog->stop();
  m_event = m_watchdog->lease_event();
  m_trouble = m_watchdog->trouble();
  m_taken.listener = m_watchdog->take_listener();
  if (m_renews) {
    m_taken.sent_at = m_watchdog->last_kept();
  }
  m_watchdog.reset();
}

const std::optional<LeaseEvent>& LockSession::lease_event()
{
  if (m_watchdog && !m_event) {
    m_event = m_watchdog->lease_event();
  }
  return m_event;
}

void LockSession::renew(const CallLimits& limit)
{
  const Instant sent_at = m_context.clock.now();
  const auto renewal = m_store->renew(spec(), m_hold.owner, limit);
  if (!renewal) {
    m_store->forget();
    m_event = Unconfirmed{"it could not be renewed: " + renewal.error().text};
    return;
  }
  m_event = lease_event_of(*renewal);
  if (!m_event) {
    m_taken.sent_at = sent_at;
  }
}

void LockSession::rest()
{
  unwatch();
  m_store->rest();
}

bool LockSession::was_released(const CallLimits& limit)
{
  unwatch();
  const auto released = release({}, limit);
  const bool release_all = released && !std::holds_alternative<NotHeld>(*released);
  if (release_all) {
    m_event.reset();
  }
  return release_all;
}

Result<Release> LockSession::release(const ReleaseOptions& release_options, const CallLimits& limit)
{
  return m_store->release(spec(), m_hold, release_options, limit);
}

}  // namespace rlock
