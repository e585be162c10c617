// SPDX-License-Identifier: Apache-2.0
#include "lock/waiter_requests.h"

#include <unistd.h>
#include <algorithm>
#include <utility>
#include <vector>
#include "lock/reach_server.h"

namespace rlock {

CallLimits WaiterRequests::limit_from(Instant now) const
{
  const bool bounded = m_server_has_answered && m_policy.waits && !waits_for_server(m_policy, now);
  return {.deadline = answer_deadline(now, m_policy.server_timeout, bounded ? m_policy.until : std::nullopt),
          .stop = m_stop};
}

WaiterRequests::Answer WaiterRequests::acquire(const LockCandidate& candidate, const AcquireOptions& options)
{
  LockSpec spec = candidate.spec;
  spec.max_waiting = m_policy.was_in_line ? std::nullopt : spec.max_waiting;
  const Instant first = m_clock.now();
  const CallLimits limit = limit_from(first);
  const Instant give_up = std::min(limit.deadline, first + spec.ttl / 4);
  for (Instant sent_at = first;; sent_at = m_clock.now()) {
    if (std::exchange(m_needs_fresh_owner, false)) {
      m_owner = Owner::fresh(m_rng, ::getpid());
    }
    spec.who.since_ms = wall_clock_ms();
    if (spec.ends_at) {
      spec.ttl = spec.who.lease = std::max(std::chrono::ceil<Millis>(*spec.ends_at - m_clock.now()), Millis{1});
    }
    auto answer = m_store.acquire(spec, m_owner, options, limit);
    m_needs_fresh_owner =
        m_store.traits().releases_refused_attempts && !(answer && std::holds_alternative<Granted>(*answer));
    const Busy* busy = answer ? std::get_if<Busy>(&*answer) : nullptr;
    const Instant again = busy != nullptr && busy->split_vote ? m_clock.now() + *busy->again_in : far_future;
    if (again >= give_up) {
      return {std::move(answer), sent_at};
    }
    m_server_has_answered = true;
    if (m_clock.sleep_until(again, m_stop) == Wake::stopped) {
      return {Error{ErrorCode::interrupted, "interrupted"}, sent_at};
    }
  }
}

Result<Done> WaiterRequests::await_replicas(const LockCandidate& candidate, Instant sent_at)
{
  return m_store.await_replicas(candidate.spec, limit_from(sent_at));
}

// The owner may be used again only if the store says that nothing happened.
void WaiterRequests::release_all_but(LockCandidates& candidates, const LockCandidate* kept)
{
  std::vector<LockCandidate*> leaving;
  std::vector<const LockSpec*> specs;
  for (LockCandidate& candidate : candidates) {
    if (candidate.needs_release && &candidate != kept) {
      leaving.push_back(&candidate);
      specs.push_back(&candidate.spec);
    }
  }
  if (specs.empty()) {
    return;
  }
  const Instant by = m_clock.now() + std::min(give_back_timeout, m_policy.server_timeout);
  const auto answers = m_store.release_each(specs, m_owner, {.deadline = by, .stop = StopToken::never()});
  for (std::size_t i = 0; i < leaving.size(); ++i) {
    m_needs_fresh_owner = m_needs_fresh_owner || answers[i] || answers[i].error().code != ErrorCode::server_not_ready;
    if (answers[i]) {
      leaving[i]->released(m_clock.now());
    }
  }
}

}  // namespace rlock
