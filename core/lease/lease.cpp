// SPDX-License-Identifier: Apache-2.0
#include "lease/lease.h"

#include <algorithm>
#include <system_error>
#include <utility>

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
      m_log(log),
      m_made_at(clock.now())
{
}

Instant Lease::watch_from() const
{
  const auto [from, length] = m_budget.term();
  return std::min(m_lock.is_claim ? m_made_at + unwatched_claim : from + unwatched_time, from + length / 6);
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
    m_store.drop_connection();
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

namespace {

constexpr std::int64_t retries_per_ttl = 50;

}  // namespace

LeaseGroup::LeaseGroup(LeaseGroupOptions options, const Clock& clock, const Log& log)
    : m_options(std::move(options)), m_clock(clock), m_log(log)
{
}

LeaseGroup::~LeaseGroup() { stop_watchdogs(); }

void LeaseGroup::add(Lease& lease)
{
  m_leases.push_back(&lease);
  m_due = std::min(m_due, lease.watch_from());
  const MutexLock lock(m_mutex);
  m_budgets.push_back(lease.budget());
}

Instant LeaseGroup::due() const
{
  Instant due = m_due;
  for (const Lease* lease : m_leases) {
    due = std::min(due, lease->due());
  }
  return due;
}

void LeaseGroup::watch()
{
  if (m_clock.now() >= m_due) {
    start_watchdogs();
  }
  for (Lease* lease : m_leases) {
    lease->act(m_options.interrupt);
  }
}

void LeaseGroup::start_watchdogs()
{
  m_due = far_future;
  for (std::size_t i = 0; i < m_leases.size(); ++i) {
    if (m_leases[i]->is_watched() || m_leases[i]->event()) {
      continue;
    }
    try {
      start_watchdog(i);
    } catch (const std::system_error& refused) {
      const std::string why = "it could not be watched: " + refused.code().message();
      if (m_leases[i]->trouble() != why) {
        m_log.detail("cannot watch the lease yet: " + refused.code().message());
        m_leases[i]->set_trouble(why);
      }
      m_due = m_clock.now() + m_leases[i]->budget().term().length / retries_per_ttl;
      return;
    }
  }
}

void LeaseGroup::start_watchdog(std::size_t which)
{
  Lease& lease = *m_leases[which];
  lease.start_watchdog(m_options.watch, [this, which](const LeaseBudget& budget) { move(which, budget); });
  if (m_options.wakes == nullptr) {
    return;
  }
  try {
    m_options.wakes->add(StopToken(lease.event_fd()));
  } catch (const std::system_error&) {
    lease.stop_watchdog();
    throw;
  }
}

void LeaseGroup::move(std::size_t which, const LeaseBudget& budget)
{
  const MutexLock lock(m_mutex);
  m_budgets[which] = budget;
  if (m_options.on_moved) {
    m_options.on_moved(*std::ranges::min_element(m_budgets, {}, &LeaseBudget::valid_until));
  }
}

void LeaseGroup::stop_watchdogs()
{
  for (Lease* lease : m_leases) {
    if (!lease->is_watched()) {
      continue;
    }
    if (m_options.wakes != nullptr) {
      m_options.wakes->remove(StopToken(lease->event_fd()));
    }
    lease->stop_watchdog();
    m_due = m_clock.now();
  }
  m_due = with_event() != nullptr ? far_future : m_due;
}

Lease* LeaseGroup::with_event()
{
  const auto found =
      std::find_if(m_leases.begin(), m_leases.end(), [](Lease* lease) { return lease->event().has_value(); });
  return found == m_leases.end() ? nullptr : *found;
}

}  // namespace rlock
