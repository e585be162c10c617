// SPDX-License-Identifier: Apache-2.0
// How many of several independent servers have to agree, and whether they have: arithmetic, nothing else.
#pragma once

#include "base/clock.h"
#include "base/rng.h"
#include "lock/mode.h"

#include <algorithm>
#include <cstddef>

namespace rlock {

enum class QuorumRule { majority, all };

// Any two quorums share a server. For k permits any k + 1 of them share one, which admits k holders only: n*k/(k+1) + 1
// servers; a majority of three would admit three holders of two permits.
std::size_t quorum_size(QuorumRule rule, const Mode& mode, std::size_t servers);

// What the servers said to one question. `failed`: an Error, of which nothing follows; `silent`: not yet, or never.
struct Tally {
  std::size_t yes = 0;
  std::size_t no = 0;
  std::size_t failed = 0;
  std::size_t silent = 0;
};

enum class Decision {
  open,     // further answers count
  carried,  // a quorum said yes
  refused,  // it cannot become one, and no is the reason
  unknown,  // it cannot become one, and those who failed are the reason
};

// "May I?" A no is an answer like a yes: when a quorum answered and not all of it said yes, somebody else is there.
// `silent` that will stay so counts as failed.
Decision decide_grant(const Tally& tally, std::size_t quorum);

// "Is it mine still?" Only so many a no that no quorum is left without them proves anything.
Decision decide_proof(const Tally& tally, std::size_t quorum);

// How long to wait before a further attempt, so that of several who took a part of the servers each, and gave them
// back, one comes first the next time. Not thread-safe.
class Backoff {
 public:
  explicit Backoff(Rng& rng) : m_rng(rng) {}

  // Nobody won, and finding out took that long: twice the time to choose from.
  void tied(Millis took)
  {
    m_least = std::clamp(took * 2, shortest, longest / 4);
    m_ties = std::min(m_ties + 1, most_doublings);
  }
  void settled() { m_ties = 0; }

  [[nodiscard]] Millis draw()
  {
    const Millis window = std::min(m_least * (std::int64_t{1} << m_ties), longest);
    return Millis{1 + static_cast<std::int64_t>(m_rng.next() % static_cast<std::uint64_t>(window.count()))};
  }

 private:
  static constexpr Millis shortest{4};
  static constexpr Millis longest{500};
  static constexpr int most_doublings = 7;
  Rng& m_rng;
  Millis m_least = shortest;
  int m_ties = 0;
};

}  // namespace rlock
