// SPDX-License-Identifier: Apache-2.0
#include "run/lock_session.h"

#include "base/text.h"
#include "lock/validity.h"
#include "run/environment.h"
#include "run/prepared_job.h"

#include <algorithm>

namespace rlock {
namespace {

constexpr Millis unwatched{200};

}  // namespace

Holding::Holding(const RunRequest& request, const World& world, std::vector<LockSpec> any_of, Owner owner)
    : m_request(request),
      m_world(world),
      m_any_of(std::move(any_of)),
      m_hold(std::move(owner)),
      m_taken{.which = 0, .owner = m_hold.owner, .grant = {}, .sent_at = {}, .listener = nullptr}
{
}

std::string Holding::wanted() const
{
  const std::size_t shards = m_request.shards.size();
  return shards == 0 ? printable(name().text())
                     : printable(m_request.names.begin()->text()) + " (" + std::to_string(shards) + " shards)";
}

std::optional<std::size_t> Holding::shard() const
{
  return m_request.shards.empty() ? std::nullopt : std::optional{m_which};
}

Result<Holding::Outcome> Holding::take(const WaitPolicy& policy, Stop stop, Onlooker& onlooker)
{
  auto store = open_store(m_request.server, m_world.clock, stop);
  if (!store) {
    return store.error().fault == Fault::interrupted ? Result<Outcome>(Interrupted{}) : store.error();
  }
  m_store = *std::move(store);
  auto entry = enter(*m_store, m_any_of, m_hold.owner, ancestors(), policy, m_world.clock, m_world.rng, stop, onlooker);
  if (!entry) {
    return entry.error();
  }
  if (auto* entered = std::get_if<Entered>(&*entry)) {
    m_hold = entered->hold;
    m_taken = std::move(entered->taken);
    m_which = m_taken.which;
    if (m_hold.is_nested()) {
      m_world.log.detail("re-entered " + printable(name().text()) + ", which is now held " +
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
std::vector<Ancestor> Holding::ancestors() const
{
  return m_request.manners == Manners::flock ? std::vector<Ancestor>{}
                                             : ancestors_with(m_request.environment, m_any_of);
}

Instant Holding::valid_until() const { return rlock::valid_until(m_taken.sent_at, spec().ttl); }

Instant Holding::watch_from() const { return m_taken.sent_at + std::min<Millis>(unwatched, spec().ttl / 6); }

void Holding::keep()
{
  start_watchdog(
      true, [](Instant) {}, "it is given up");
}

void Holding::watch(std::function<void(Instant)> moved)
{
  const bool stops = m_request.on_lost == OnLost::stop;
  start_watchdog(m_request.automatic, std::move(moved), stops ? "the job will be stopped" : "its lease ends");
}

void Holding::start_watchdog(bool renews, std::function<void(Instant)> moved, std::string_view consequence)
{
  m_renews = renews;
  m_watchdog = std::make_unique<Watchdog>(*m_store,
                                          WatchOrder{.spec = spec(),
                                                     .owner = m_hold.owner,
                                                     .renews = renews,
                                                     .acquired_at = m_taken.sent_at,
                                                     .kill_margin = stop_leads(m_request).signal,
                                                     .listener = std::move(m_taken.listener),
                                                     .moved = std::move(moved),
                                                     .consequence = consequence},
                                          m_world.clock, m_world.log);
}

void Holding::unwatch()
{
  if (!m_watchdog) {
    return;
  }
  m_watchdog->stop();
  m_verdict = m_watchdog->verdict();
  m_trouble = m_watchdog->trouble();
  m_taken.listener = m_watchdog->take_listener();
  if (m_renews) {
    m_taken.sent_at = m_watchdog->last_kept();
  }
  m_watchdog.reset();
}

const std::optional<Verdict>& Holding::verdict()
{
  if (m_watchdog && !m_verdict) {
    m_verdict = m_watchdog->verdict();
  }
  return m_verdict;
}

void Holding::renew(const Limit& limit)
{
  const Instant sent_at = m_world.clock.now();
  const auto renewal = m_store->renew(spec(), m_hold.owner, limit);
  if (!renewal) {
    m_store->forget();
    m_verdict = Unsure{"it could not be renewed: " + renewal.error().text};
    return;
  }
  m_verdict = verdict_on(*renewal);
  if (!m_verdict) {
    m_taken.sent_at = sent_at;
  }
}

void Holding::rest()
{
  unwatch();
  m_store->rest();
}

bool Holding::was_released(const Limit& limit)
{
  unwatch();
  const auto released = release({}, limit);
  const bool let_go = released && !std::holds_alternative<NotOurs>(*released);
  if (let_go) {
    m_verdict.reset();
  }
  return let_go;
}

Result<Release> Holding::release(const Parting& parting, const Limit& limit)
{
  return m_store->release(spec(), m_hold, parting, limit);
}

}  // namespace rlock
