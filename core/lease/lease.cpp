// SPDX-License-Identifier: Apache-2.0
#include "lease/lease.h"

#include <algorithm>

namespace rlock {
namespace {

constexpr Millis unwatched_time{200};
constexpr Millis unwatched_claim{50};  // a claim is short, and its first renewal is yet to come

}  // namespace

Lease::Lease(LockStore& store, GrantedLock lock, Millis kill_after, const Clock& clock, const Log& log)
    : m_store(store),
      m_lock(std::move(lock)),
      m_budget(m_lock.lease),
      m_kill_after(kill_after),
      m_clock(clock),
      m_log(log)
{
}

Instant Lease::watch_from() const
{
  const auto [from, length] = m_budget.term();
  return from + std::min<Millis>(m_lock.is_claim ? unwatched_claim : unwatched_time, length / 6);
}

void Lease::start_watchdog(const WatchOptions& options, std::function<void(const LeaseBudget&)> on_moved)
{
  m_watchdog = std::make_unique<Watchdog>(m_store,
                                          WatchdogOptions{.spec = spec(),
                                                          .owner = m_lock.owner,
                                                          .renews = options.renews,
                                                          .lease = m_budget,
                                                          .is_claim = m_lock.is_claim,
                                                          .kill_after = m_kill_after,
                                                          .listener = std::move(m_lock.listener),
                                                          .on_moved = std::move(on_moved),
                                                          .consequence = options.consequence},
                                          m_clock, m_log);
}

void Lease::act(StopToken interrupt)
{
  if (m_watchdog) {
    m_watchdog->act(interrupt);
  }
}

void Lease::stop_watchdog()
{
  if (!m_watchdog) {
    return;
  }
  m_watchdog->stop();
  m_event = m_watchdog->event();
  m_trouble = m_watchdog->trouble();
  m_lock.listener = m_watchdog->take_listener();
  m_budget = m_watchdog->lease();
  m_lock.is_claim = m_watchdog->is_claim();
  m_watchdog.reset();
}

const std::optional<LeaseEvent>& Lease::event()
{
  if (m_watchdog && !m_event) {
    m_event = m_watchdog->event();
  }
  return m_event;
}

void Lease::renew(const CallLimits& limit)
{
  const auto renewal = m_store.renew(spec(), m_lock.owner, {.confirms = m_lock.is_claim}, limit);
  if (!renewal) {
    m_store.forget();
    m_event = Unconfirmed{"it could not be renewed: " + renewal.error().text};
    return;
  }
  const auto* renewed = std::get_if<Renewed>(&*renewal);
  if (renewed != nullptr && m_clock.now() >= m_budget.valid_until()) {
    m_event = answered_too_late();
    return;
  }
  m_event = lease_event_of(*renewal);
  if (!m_event && renewed->lease) {
    m_budget = LeaseBudget(*renewed->lease);
    m_lock.is_claim = false;
  }
}

}  // namespace rlock
