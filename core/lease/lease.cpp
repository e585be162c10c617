// SPDX-License-Identifier: Apache-2.0
#include "lease/lease.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace rlock {
namespace {

constexpr Millis unwatched_time{200};
constexpr Millis unwatched_claim{50};  // a claim is short, and its first renewal is yet to come
constexpr std::int64_t retries_per_ttl = 50;

}  // namespace

Lease::Lease(LockStore& store, GrantedLock lock, Millis kill_after, const Clock& clock)
    : m_store(store),
      m_lock(std::move(lock)),
      m_budget(m_lock.lease),
      m_kill_after(kill_after),
      m_clock(clock),
      m_made_at(clock.now())
{
}

Instant Lease::watch_from() const
{
  const auto [from, length] = m_budget.term();
  const Millis unwatched = m_lock.is_claim ? unwatched_claim : unwatched_time;
  return std::min(std::max(m_made_at, from) + unwatched, from + length / 6);
}

LeaseWatchOptions Lease::watch_options(bool renews, std::string_view consequence) const
{
  return {.spec = spec(),
          .owner = m_lock.owner,
          .renews = renews,
          .lease = m_budget,
          .is_claim = m_lock.is_claim,
          .kill_after = m_kill_after,
          .consequence = consequence};
}

void Lease::resume(const LeaseWatch& watch, std::string trouble)
{
  m_budget = watch.lease();
  m_lock.is_claim = watch.is_claim();
  m_trouble = std::move(trouble);
}

bool Lease::is_kept() const { return !m_event || (std::holds_alternative<ReleaseRequested>(*m_event) && !m_is_over); }

// False: only the renewals have ended, of a lock whose release was requested before.
bool Lease::note(LeaseNews news)
{
  const bool is_first = !m_event;
  m_is_over = news.is_over;
  m_is_lost_later = !is_first && std::holds_alternative<Lost>(news.event);
  if (is_first) {
    m_event = std::move(news.event);
  }
  return is_first || m_is_lost_later;
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

LeaseGroup::LeaseGroup(LeaseGroupOptions options, const Clock& clock, const Log& log)
    : m_options(std::move(options)), m_clock(clock), m_log(log)
{
}

// A lease has the listener from then on: closing its connection would delay the next holder.
LeaseGroup::~LeaseGroup()
{
  stop_watchdog();
  if (m_listener) {
    m_watched.front()->m_lock.listener = std::move(m_listener);
  }
}

LeaseWatch LeaseGroup::watch_of(const Lease& lease) const
{
  return {lease.watch_options(m_options.renews, m_options.consequence), m_clock, m_log};
}

void LeaseGroup::add(Lease& lease)
{
  m_leases.push_back(&lease);
  if (m_leases.size() > 1) {
    lease.m_lock.listener.reset();  // one connection hears of all locks
  }
  if (m_watchdog) {
    m_watched.push_back(&lease);
    m_watchdog->add(watch_of(lease), lease.watch_from());
  } else {
    m_due = std::min(m_due, lease.watch_from());
  }
}

Instant LeaseGroup::due() const { return m_watchdog ? m_watchdog->due() : m_due; }

void LeaseGroup::watch()
{
  if (!m_watchdog && m_clock.now() >= m_due) {
    start_watchdog();
  }
  if (m_watchdog) {
    m_watchdog->act(m_options.interrupt);
  }
}

void LeaseGroup::watch_all_due(StopToken stop)
{
  // One more, because the first call may only start the watchdog, or give up a lease.
  for (std::size_t left = m_leases.size() + 1; left > 0 && m_clock.now() >= due(); --left) {
    if (stop.requested() || with_event() != nullptr) {
      return;
    }
    watch();
  }
}

// The listener of a wait is of use for the only lock.
void LeaseGroup::start_watchdog()
{
  m_due = far_future;
  std::vector<Lease*> watched;
  std::vector<LeaseWatch> watches;
  for (Lease* lease : m_leases) {
    if (lease->is_kept()) {
      watched.push_back(lease);
      watches.push_back(watch_of(*lease));
    }
  }
  if (watched.empty()) {
    return;
  }
  if (watched != m_watched) {
    m_listener = watched.size() == 1 ? std::move(watched.front()->m_lock.listener) : nullptr;
    watched.front()->m_lock.listener.reset();
  }
  try {
    m_watchdog = std::make_unique<Watchdog>(watched.front()->store(),
                                            WatchdogOptions{.leases = std::move(watches),
                                                            .listener = std::move(m_listener),
                                                            .on_moved = m_options.on_moved,
                                                            .has_thread = m_options.has_thread},
                                            m_clock, m_log);
    m_watched = std::move(watched);
  } catch (const std::system_error& refused) {
    const std::string why = "it could not be watched: " + refused.code().message();
    if (watched.front()->m_trouble != why) {
      m_log.detail("cannot watch the lease yet: " + refused.code().message());
    }
    for (Lease* lease : watched) {
      lease->m_trouble = why;
    }
    m_due = m_clock.now() + watched.front()->budget().term().length / retries_per_ttl;
  }
}

void LeaseGroup::stop_watchdog()
{
  if (m_watchdog) {
    m_watchdog->stop();
    take_news();
    for (std::size_t i = 0; i < m_watched.size(); ++i) {
      const LeaseWatch& watch = m_watchdog->leases()[i];
      m_watched[i]->resume(watch, m_watchdog->trouble(watch));
    }
    m_listener = m_watchdog->take_listener();
    m_watchdog.reset();
    m_due = m_clock.now();
  }
  m_due = with_event() != nullptr ? far_future : m_due;
}

void LeaseGroup::go_on()
{
  const bool is_any_left = std::ranges::any_of(m_leases, &Lease::is_kept);
  m_due = is_any_left ? m_clock.now() : m_due;
}

std::vector<Lease*> LeaseGroup::take_news()
{
  std::vector<Lease*> news;
  for (LeaseNews& each : m_watchdog ? m_watchdog->take_news() : std::vector<LeaseNews>{}) {
    Lease* const lease = m_watched[each.which];
    if (lease->note(std::move(each))) {
      news.push_back(lease);
    }
  }
  return news;
}

Lease* LeaseGroup::with_event()
{
  take_news();
  const auto found = std::ranges::find_if(m_leases, [](const Lease* lease) { return lease->event().has_value(); });
  return found == m_leases.end() ? nullptr : *found;
}

}  // namespace rlock
