// SPDX-License-Identifier: Apache-2.0
// The locks any of which will do, in the order in which they are asked: as they were given, from a random one on.
#pragma once

#include "lock/lock_candidate.h"

#include <cstdint>
#include <span>
#include <vector>

namespace rlock {

class LockCandidates {
 public:
  // `specs` must outlive it, and is not empty.
  LockCandidates(std::span<const LockSpec> specs, Rng& rng);

  // Whose turn it is to be asked, of those whose time has come; nullptr: nobody's. It stays so until next_turn().
  LockCandidate* due(Instant now);
  void next_turn() { ++m_turn; }

  // The first ticket we were given tells when we came; what we are to be known by in the other lines follows from it.
  void came(std::uint64_t ticket);

  [[nodiscard]] Instant next_look() const;
  void ask_all_at(Instant when);
  void ask_all_by(Instant when);

  // Where we are nearest to the head of a line, by the last answers; there must have been one.
  [[nodiscard]] const LockCandidate& nearest() const;

  [[nodiscard]] std::size_t size() const { return m_places.size(); }
  auto begin() { return m_places.begin(); }
  auto end() { return m_places.end(); }

 private:
  std::vector<LockCandidate> m_places;
  std::size_t m_turn = 0;
};

}  // namespace rlock
