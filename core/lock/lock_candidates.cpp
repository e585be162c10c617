// SPDX-License-Identifier: Apache-2.0
#include "lock/lock_candidates.h"

#include <utility>
#include "base/defaults.h"

namespace rlock {
namespace {

constexpr std::uint64_t largest_difference = 20'000;  // microseconds, the unit of tickets

}  // namespace

LockCandidates::LockCandidates(std::span<const LockSpec> specs, Rng& rng)
{
  const std::size_t start = specs.size() > 1 ? below(rng, specs.size()) : 0;
  m_candidates.reserve(specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::size_t which = (start + i) % specs.size();
    m_candidates.push_back({.spec = specs[which], .which = which});
  }
}

LockCandidate* LockCandidates::due(Instant now)
{
  for (std::size_t i = 0; i < m_candidates.size(); ++i) {
    const std::size_t at = (m_turn + i) % m_candidates.size();
    if (m_candidates[at].due_at() <= now) {
      m_turn = at;
      return &m_candidates[at];
    }
  }
  return nullptr;
}

// If one waiter were first in every queue, each lock that becomes free would be handed to it until it has left the other
// queues, and would be idle meanwhile. So the tickets of one waiter differ a little.
void LockCandidates::assign_tickets(std::uint64_t first)
{
  std::uint64_t step = 0;
  for (LockCandidate& candidate : m_candidates) {
    if (candidate.ticket == 0) {
      ++step;
      candidate.ticket = first - std::min(first, largest_difference * step / m_candidates.size());
      candidate.ask_at = candidate.is_full() ? Instant{} : candidate.ask_at;
    }
  }
}

Instant LockCandidates::next_due() const
{
  Instant next = far_future;
  for (const LockCandidate& candidate : m_candidates) {
    next = std::min(next, candidate.due_at());
  }
  return next;
}

void LockCandidates::ask_all_at(Instant when)
{
  for (LockCandidate& candidate : m_candidates) {
    candidate.ask_at = when;
    candidate.confirmed_by.reset();  // else a server that is away would be asked without a pause once that is over
  }
}

void LockCandidates::ask_all_by(Instant when)
{
  for (LockCandidate& candidate : m_candidates) {
    candidate.ask_by(when);
  }
}

const LockCandidate& LockCandidates::nearest() const
{
  constexpr std::uint64_t far = UINT64_MAX;
  const auto distance = [](const LockCandidate& candidate) {
    return candidate.queued ? candidate.last->waiters_ahead : candidate.last ? far - 1 : far;
  };
  const auto is_nearer = [&](const LockCandidate& one, const LockCandidate& other) {
    return distance(one) < distance(other);
  };
  return *std::min_element(m_candidates.begin(), m_candidates.end(), is_nearer);
}

namespace {

constexpr std::uint64_t crowd = 100;   // waiters ahead from which on a waiter adds further_rest
constexpr Millis further_rest{2'000};  // keeps a thousand waiters below 100 commands a second

// Who asks when the ttl of a lock is over, and when: the first few one after the other, then the others close together, so that all
// have asked in less than two seconds. The hand-over to a stopped waiter costs handover_confirmation more.
constexpr std::uint64_t vanguard = 4;   // waiters that are step_back apart
constexpr std::uint64_t rearguard = 8;  // further waiters that ask, because the vanguard may be stopped
constexpr Millis step_back{300};
constexpr Millis step_behind{20};             // between two of the waiters behind the vanguard
constexpr std::uint64_t steps_behind{32};     // after which the steps begin again
constexpr Millis candidates_poll_pause{100};  // where the holder does not announce its release

// Whether no client will probably renew the lease: a holder that renews has more than half of its lease left. All waiters look at
// the end of such a lease, because the waiters in front may be stopped.
bool is_ending(const Busy& busy)
{
  const auto& info = busy.holder ? busy.holder->info : std::nullopt;
  return info && (!info->automatic || *busy.ttl * 2 < info->lease);
}

// How long after the end of the lock a waiter asks.
Millis turn_of(std::uint64_t place)
{
  const std::uint64_t behind = place < vanguard ? 0 : (place - vanguard) % steps_behind;
  return step_back * static_cast<std::int64_t>(std::min(place, vanguard)) +
         step_behind * static_cast<std::int64_t>(behind);
}

constexpr Millis observation{5'000};  // after which a waiter knows how fast its line moves

Millis up_to(Rng& rng, Millis most) { return Millis{below(rng, static_cast<std::uint64_t>(most.count()) + 1)}; }

}  // namespace

void LockCandidate::refused(const Busy& busy, const AcquireOptions& options, Instant sent_at, Rng& rng)
{
  last = busy;
  asked_at = sent_at;
  handover.reset();
  confirmed_by.reset();
  if (!options.queues) {
    return;
  }
  if (!std::exchange(queued, true)) {
    queued_at = sent_at;
    first_place = busy.waiters_ahead;
  }
  needs_release = true;
  ticket = busy.ticket > 0 ? busy.ticket : ticket;  // a waiter whose claim was revoked gets 0, and its place back later
  must_hear_releases = is_first() && busy.holder && !busy.holder->info && !busy.tells_end;
  ask_at = sent_at + rest_after(busy, rng);
  if (barging.must_poll(sent_at, must_hear_releases, std::exchange(was_notified, false))) {
    ask_at = sent_at + Millis{1};
  }
}

void LockCandidate::turned_away(const Busy& busy)
{
  last = busy;
  ask_at = far_future;
}

// A waiter that listens to nothing asks at the latest every look_again_after, and a little later in a crowd. It must not come among
// the first within two such times.
bool LockCandidate::is_far_back() const
{
  if (!queued || spec.once || last->waiters_ahead < listening_waiters || asked_at - queued_at < observation) {
    return false;
  }
  const auto moved = static_cast<std::int64_t>(first_place - std::min(first_place, last->waiters_ahead));
  const auto still_to_go = static_cast<std::int64_t>(last->waiters_ahead - listening_waiters + 1);
  return (asked_at - queued_at) * still_to_go > 2 * look_again_after * moved;
}

void LockCandidate::notified(const Hint& hint, Instant now)
{
  if (hint.next) {
    confirmed_by.reset();
  }
  if (hint.confirm_within) {
    confirmed_by = now + *hint.confirm_within + Millis{1};
  }
  if (hint.look_in) {
    was_notified = true;
    handover = hint.handover;
    ask_by(now + *hint.look_in);
  }
}

void LockCandidate::stopped_listening()
{
  queue_checked = false;
  hears_releases = false;
}

// The ticket is kept: with it the waiter gets its position in the queue back.
void LockCandidate::released(Instant now)
{
  last.reset();
  handover.reset();
  queued = false;
  needs_release = false;
  confirmed_by.reset();
  ask_at = now;
}

Millis rest_after(const Busy& busy, Rng& rng)
{
  if (busy.again_in) {
    return std::min(look_again_after, *busy.again_in);
  }
  const Millis longest = std::min(look_again_after, busy.watch_in.value_or(look_again_after));
  if (busy.silent && busy.waiters_ahead == 0) {
    return std::min(longest, candidates_poll_pause / 2 + up_to(rng, candidates_poll_pause / 2));
  }
  if (busy.waiters_ahead >= crowd && !busy.watch_in) {
    return look_again_after + up_to(rng, further_rest);
  }
  if (!busy.ttl || (busy.waiters_ahead >= vanguard + rearguard && !is_ending(busy))) {
    return longest;
  }
  return std::min(longest, *busy.ttl + turn_of(busy.waiters_ahead) + Millis{1} + up_to(rng, Millis{2}));
}

}  // namespace rlock
