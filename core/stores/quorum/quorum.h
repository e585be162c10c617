// SPDX-License-Identifier: Apache-2.0
// How many of several independent servers must agree, and whether they do. Pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include "base/clock.h"
#include "base/parallel_query.h"
#include "base/result.h"
#include "base/wait.h"
#include "lock/lock_kind.h"

namespace rlock {

enum class QuorumRule { majority, all };

// How many of `servers` a quorum needs. Any two quorums share a server. For k permits any k + 1 quorums share a server, so that
// at most k owners hold the lock: a quorum has n*k/(k+1) + 1 of n servers. (With majorities of three servers, three owners could
// hold two permits.)
std::size_t quorum_size(QuorumRule rule, const LockKind& kind, std::size_t servers);

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
  void split_vote(Millis took)
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

// The answers of several servers to one question, and how they are counted.

// The answers in the order of the servers; nullopt: no answer yet.
template <typename T>
using Answers = Replies<Result<T>>;

// What the servers that have answered say, in their order. Valid as long as `answers`.
template <typename T>
std::vector<const T*> values_in(const Answers<T>& answers)
{
  std::vector<const T*> values;
  for (const auto& answer : answers) {
    if (answer && *answer) {
      values.push_back(&**answer);
    }
  }
  return values;
}

// The same of those that say an Alternative of a variant.
template <typename Alternative, typename T>
std::vector<const Alternative*> alternatives_in(const Answers<T>& answers)
{
  std::vector<const Alternative*> found;
  for (const T* const value : values_in(answers)) {
    if (const auto* const one = std::get_if<Alternative>(value)) {
      found.push_back(one);
    }
  }
  return found;
}

// Counts the answers: each is an Error, a yes or a no. `means_yes` tells a yes from a no.
template <typename T, typename MeansYes>
Tally tally(const Answers<T>& answers, MeansYes means_yes)
{
  Tally all;
  for (const auto& answer : answers) {
    if (!answer) {
      ++all.silent;
    } else if (!*answer) {
      ++all.failed;
    } else if (means_yes(**answer)) {
      ++all.yes;
    } else {
      ++all.no;
    }
  }
  return all;
}

// The tally at the end: a server that is still silent has failed.
inline Tally final_tally(Tally all)
{
  all.failed += std::exchange(all.silent, 0);
  return all;
}

// Why there is no quorum: the first reason, and the number of servers that failed. The code is that of an error that may pass,
// unless the errors that do not pass already prevent a quorum. Silent servers count only if the other failures do not prevent a
// quorum.
template <typename T>
Error no_quorum(const Answers<T>& answers, std::size_t quorum)
{
  const std::size_t spare = answers.size() - quorum;
  const Tally all = tally(answers, [](const T&) { return true; });
  const Error* first = nullptr;
  const Error* first_lasting = nullptr;
  std::size_t lasting = 0;
  for (const auto& answer : answers) {
    if (!answer || *answer) {
      continue;
    }
    const Error& error = answer->error();
    first = first != nullptr ? first : &error;
    if (!is_passing(error.code) && error.code != ErrorCode::interrupted) {
      ++lasting;
      first_lasting = first_lasting != nullptr ? first_lasting : &error;
    }
  }
  const Error silence = no_answer_in_time("no answer in time");
  const std::size_t failed = all.failed > spare ? all.failed : all.failed + all.silent;
  const bool may_be_more = failed == all.failed && all.silent > 0;  // enough have failed to tell the end
  const Error& why = lasting > spare ? *first_lasting : first != nullptr ? *first : silence;
  return {lasting > spare ? why.code : ErrorCode::unreachable,
          (may_be_more ? "at least " : "") + std::to_string(failed) + " of " + std::to_string(answers.size()) +
              " servers failed, and it takes " + std::to_string(quorum) + ": " + why.text +
              (failed > 1 ? ", and " + std::to_string(failed - 1) + " more" : "")};
}

}  // namespace rlock
