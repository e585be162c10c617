// SPDX-License-Identifier: Apache-2.0
// The locks of which a waiter needs any one, in the order in which the waiter asks for them: the order of the caller, beginning
// at a random lock. Not thread-safe.
#pragma once

#include "lock/lock_candidate.h"

#include <cstdint>
#include <span>
#include <vector>

namespace rlock {

class LockCandidates {
 public:
  // `specs` must not be empty, and must outlive this.
  LockCandidates(std::span<const LockSpec> specs, Rng& rng);

  // The candidate to ask for now; nullptr: none is due. Returns the same candidate until next_turn().
  LockCandidate* due(Instant now);
  void next_turn() { ++m_turn; }

  // Gives a ticket to each candidate that has none: a ticket that follows from the first ticket of the waiter.
  void assign_tickets(std::uint64_t first);

  [[nodiscard]] Instant next_due() const;
  void ask_all_at(Instant when);
  void ask_all_by(Instant when);

  // The candidate with the fewest waiters ahead by the last answers. At least one candidate must have an answer.
  [[nodiscard]] const LockCandidate& nearest() const;

  [[nodiscard]] std::size_t size() const { return m_candidates.size(); }
  auto begin() { return m_candidates.begin(); }
  auto end() { return m_candidates.end(); }

 private:
  std::vector<LockCandidate> m_candidates;
  std::size_t m_turn = 0;
};

}  // namespace rlock
