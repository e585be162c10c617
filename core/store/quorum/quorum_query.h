// SPDX-License-Identifier: Apache-2.0
// How QuorumStore asks its servers. Private to QuorumStore.
#pragma once

#include "store/quorum/quorum_store.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace rlock {

// How long a query waits for a server that has not answered lately: long enough to send the request.
constexpr Millis unresponsive_grace{50};

inline CallLimits earlier(const CallLimits& limit, Instant deadline)
{
  return {.deadline = std::min(limit.deadline, deadline), .stop = limit.stop};
}

// What a request is about, and what becomes of waiting requests of the same topic.
struct Subject {
  std::string topic;
  ServerWorker::PostMode mode = ServerWorker::PostMode::replace;
};
inline std::string topic_of(const LockName& name, const Hold& hold) { return hold.token() + " " + name.text(); }
inline Subject repeated(const LockName& name, const Hold& hold)
{
  return {topic_of(name, hold), ServerWorker::PostMode::repeat};
}

// The greatest number and count of the grants for which `counts(grant)` is true.
template <typename T, typename Counts>
Granted greatest_grant(const Answers<T>& answers, Counts counts)
{
  Granted greatest{.fence = 0, .count = 1, .lease = {}};
  for (const auto& answer : answers) {
    const auto* granted = answer && *answer ? std::get_if<Granted>(&**answer) : nullptr;
    if (granted != nullptr && counts(*granted)) {
      greatest.fence = std::max(greatest.fence, granted->fence);
      greatest.count = std::max(greatest.count, granted->count);
    }
  }
  return greatest;
}

inline const LeaseTerm* lease_in(const Attempt& attempt)
{
  const auto* granted = std::get_if<Granted>(&attempt);
  return granted != nullptr ? &granted->lease : nullptr;
}
inline const LeaseTerm* lease_in(const ReentryResult& entry)
{
  const auto* granted = std::get_if<Granted>(&entry);
  return granted != nullptr ? &granted->lease : nullptr;
}
inline const LeaseTerm* lease_in(const Renewal& renewal)
{
  const auto* renewed = std::get_if<Renewed>(&renewal);
  return renewed != nullptr && renewed->lease ? &*renewed->lease : nullptr;
}

// A quorum of the servers gave leases that last as long as this one, or longer. Fewer leases: none.
template <typename T>
LeaseTerm lease_of_quorum(const Answers<T>& answers, std::size_t quorum)
{
  std::vector<LeaseTerm> leases;
  for (const auto& answer : answers) {
    const LeaseTerm* const lease = answer && *answer ? lease_in(**answer) : nullptr;
    if (lease != nullptr) {
      leases.push_back(*lease);
    }
  }
  if (leases.size() < quorum) {
    return {};
  }
  std::ranges::sort(leases, std::ranges::greater{},
                    [](const LeaseTerm& lease) { return LeaseBudget(lease).valid_until(); });
  return leases[quorum - 1];
}

// Posts `request(server, limits)` to all servers. It runs to its end also when the caller waits no longer; where the system has
// no thread left, it has run when this function returns.
template <typename T, typename Request>
QuorumStore::Query<T> QuorumStore::post_all(const Subject& subject, const CallLimits& limit, Request request)
{
  auto pending = std::make_shared<PendingReplies<Result<T>>>(size());
  std::vector<bool> unresponsive;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto task = [pending, i, deadline = limit.deadline, request](QuorumServer& server, const CallLimits& within) {
      Result<T> answer = request(server, earlier(within, deadline));
      const bool answered = static_cast<bool>(answer);
      pending->put(i, std::move(answer));
      return answered;
    };
    unresponsive.push_back(m_workers[i]->post(subject.topic, subject.mode, task));
  }
  work_without_threads(limit);
  return {std::move(pending), std::move(unresponsive)};
}

// Decides whether a quorum says yes, and returns as soon as further answers cannot change the decision.
template <typename T, typename Request, typename MeansYes>
QuorumStore::Proof<T> QuorumStore::prove(const Subject& subject, std::size_t quorum, const CallLimits& limit,
                                         Request request, MeansYes means_yes)
{
  const auto pending = post_all<T>(subject, limit, std::move(request)).pending;
  pending->wait(m_clock, limit, [&](const Answers<T>& so_far) {
    return decide_proof(tally(so_far, means_yes), quorum) != Decision::open;
  });
  auto answers = pending->take();
  const Decision decision = decide_proof(final_tally(tally(answers, means_yes)), quorum);
  return {std::move(answers), decision};
}

// Asks all servers and waits for them. If the answers are enough without the unresponsive servers, those get
// `unresponsive_grace`.
template <typename T, typename Request, typename Enough>
Answers<T> QuorumStore::ask_all(const Subject& subject, const CallLimits& limit, Request request, Enough enough)
{
  const auto [pending, unresponsive] = post_all<T>(subject, limit, std::move(request));
  pending->wait(m_clock, limit, [&unresponsive = unresponsive, &enough](const Answers<T>& answers) {
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i] && !unresponsive[i]) {
        return false;
      }
    }
    return all_replied(answers) || static_cast<bool>(enough(answers));
  });
  pending->wait(m_clock, {.deadline = std::min(limit.deadline, m_clock.now() + unresponsive_grace), .stop = limit.stop},
                [](const Answers<T>& answers) { return all_replied(answers); });
  return pending->take();
}

}  // namespace rlock
