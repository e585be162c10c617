// SPDX-License-Identifier: Apache-2.0
#include "lock/lock_candidates.h"

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

}  // namespace rlock
