// SPDX-License-Identifier: Apache-2.0
// How many of several independent servers must agree, and whether they do. Pure functions.
#pragma once

#include "base/clock.h"
#include "base/rng.h"
#include "lock/mode.h"

#include <algorithm>
#include <cstddef>

namespace rlock {

enum class QuorumRule { majority, all };

// Any two quorums share a server. For k permits any k + 1 quorums share one, so that at most k owners hold the lock:
// that takes n*k/(k+1) + 1 of n servers. With a majority of three servers three owners would hold two permits.
std::size_t quorum_size(QuorumRule rule, const Mode& mode, std::size_t servers);

// The answers of the servers to one question.
struct Tally {
  std::size_t yes = 0;
  std::size_t no = 0;
  std::size_t failed = 0;  // an Error, from which nothing follows
  std::size_t silent = 0;  // no answer yet
};

enum class Decision {
  open,     // further answers can change it
  carried,  // a quorum said yes
  refused,  // too many servers said no for a quorum
  unknown,  // too many servers failed for a quorum
};

// "May I have the lock?" A no is an answer like a yes: when a quorum answered and not all of it said yes, another owner
// is there.
Decision decide_grant(const Tally& tally, std::size_t quorum);

// "Do I still have the lock?" Refused only when so many servers said no that the others are too few for a quorum.
Decision decide_proof(const Tally& tally, std::size_t quorum);

// The random pause before a further attempt. Several clients that took a part of the servers each, and gave them back,
// ask again at different times, so that one of them is first. The time from which the pause is drawn doubles with each
// tie and is halved when some client has the lock: it follows the number of waiters and the time that an attempt takes.
// Not thread-safe.
class Backoff {
 public:
  explicit Backoff(Rng& rng) : m_rng(rng) {}

  // No client got a quorum, which took so long to find out.
  void tied(Millis took)
  {
    m_least = std::clamp(took * 2, shortest, longest / 4);
    m_ties = std::min(m_ties + 1, most_doublings);
  }
  // Some client has the lock. After as many as there were ties the servers' slowness is forgotten, too.
  void settled()
  {
    m_ties = std::max(m_ties - 1, 0);
    m_least = m_ties == 0 ? shortest : m_least;
  }

  [[nodiscard]] Millis draw()
  {
    const Millis window = std::min(m_least * (std::int64_t{1} << m_ties), longest);
    return Millis{1 + static_cast<std::int64_t>(m_rng.next() % static_cast<std::uint64_t>(window.count()))};
  }

 private:
  static constexpr Millis shortest{4};
  static constexpr Millis longest{30'000};  // with 500 ms two dozen waiters starve where an attempt takes 100 ms
  static constexpr int most_doublings = 7;
  Rng& m_rng;
  Millis m_least = shortest;
  int m_ties = 0;
};

}  // namespace rlock
