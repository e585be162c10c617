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

// How many of `servers` a quorum needs. Any two quorums share a server. For k permits any k + 1 quorums share a server, so that
// at most k owners hold the lock: a quorum has n*k/(k+1) + 1 of n servers. (With majorities of three servers, three owners could
// hold two permits.)
std::size_t quorum_size(QuorumRule rule, const Mode& mode, std::size_t servers);

// The answers of the servers to one question.
struct Tally {
  std::size_t yes = 0;
  std::size_t no = 0;
  std::size_t failed = 0;  // an Error, which is neither a yes nor a no
  std::size_t silent = 0;  // no answer yet
};

enum class Decision {
  open,     // further answers can change the decision
  carried,  // a quorum said yes
  refused,  // too many servers said no for a quorum
  unknown,  // too many servers failed for a quorum
};

// Decides whether an owner gets the lock. A no counts as an answer: when a quorum has answered and not all of it said yes, the
// lock has another owner.
Decision decide_grant(const Tally& tally, std::size_t quorum);

// Decides whether an owner still has the lock. Refused only when so many servers said no that the other servers are too few for
// a quorum.
Decision decide_proof(const Tally& tally, std::size_t quorum);

// The random pause before a further attempt. Several clients that took a part of the servers each, and gave them back, ask again
// at different times, so that one of the clients is first. The longest pause doubles with each tie and is halved when a client
// has the lock, so it follows the number of waiters and the time that an attempt takes. Not thread-safe.
class Backoff {
 public:
  explicit Backoff(Rng& rng) : m_rng(rng) {}

  // Notes that no client got a quorum. `took`: how long the attempt took.
  void tied(Millis took)
  {
    m_least = std::clamp(took * 2, shortest, longest / 4);
    m_ties = std::min(m_ties + 1, most_doublings);
  }
  // Notes that a client has the lock. After as many calls as there were ties, the time that an attempt took is forgotten, too.
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
  static constexpr Millis longest{30'000};  // with 500 ms, two dozen waiters starved when an attempt took 100 ms
  static constexpr int most_doublings = 7;
  Rng& m_rng;
  Millis m_least = shortest;
  int m_ties = 0;
};

}  // namespace rlock
