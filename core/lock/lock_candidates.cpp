// SPDX-License-Identifier: Apache-2.0
#include "lock/lock_candidates.h"

namespace rlock {
namespace {

constexpr std::uint64_t head_start = 20'000;  // microseconds, as tickets are

}  // namespace

LockCandidates::LockCandidates(std::span<const LockSpec> specs, Rng& rng)
{
  const std::size_t first = specs.size() > 1 ? below(rng, specs.size()) : 0;
  m_places.reserve(specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::size_t which = (first + i) % specs.size();
    m_places.push_back({.spec = specs[which], .which = which});
  }
}

LockCandidate* LockCandidates::due(Instant now)
{
  for (std::size_t i = 0; i < m_places.size(); ++i) {
    const std::size_t at = (m_turn + i) % m_places.size();
    if (m_places[at].due_at() <= now) {
      m_turn = at;
      return &m_places[at];
    }
  }
  return nullptr;
}

// Were the same waiter first in every line, it would be handed each lock that comes free until it has left those lines,
// and each would stand idle meanwhile. So each waiter is a little earlier in some lines than in others.
void LockCandidates::came(std::uint64_t ticket)
{
  std::uint64_t step = 0;
  for (LockCandidate& place : m_places) {
    if (place.ticket == 0) {
      ++step;
      place.ticket = ticket - std::min(ticket, head_start * step / m_places.size());
    }
  }
}

Instant LockCandidates::next_look() const
{
  Instant next = far_future;
  for (const LockCandidate& place : m_places) {
    next = std::min(next, place.due_at());
  }
  return next;
}

void LockCandidates::ask_all_at(Instant when)
{
  for (LockCandidate& place : m_places) {
    place.look_at = when;
  }
}

void LockCandidates::ask_all_by(Instant when)
{
  for (LockCandidate& place : m_places) {
    place.look_by(when);
  }
}

const LockCandidate& LockCandidates::nearest() const
{
  constexpr std::uint64_t far = UINT64_MAX;
  const auto distance = [](const LockCandidate& place) {
    return place.in_line ? place.last->place : place.last ? far - 1 : far;
  };
  const auto is_nearer = [&](const LockCandidate& one, const LockCandidate& other) {
    return distance(one) < distance(other);
  };
  return *std::min_element(m_places.begin(), m_places.end(), is_nearer);
}

}  // namespace rlock
