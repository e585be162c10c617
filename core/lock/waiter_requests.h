// SPDX-License-Identifier: Apache-2.0
// The requests of one waiter. Private to lock/waiting.cpp.
#pragma once

#include "base/clock.h"
#include "base/defaults.h"
#include "base/result.h"
#include "lock/lock_candidates.h"
#include "lock/store.h"
#include "lock/waiting.h"

namespace rlock {

// Sends the requests of one waiter to the store: gives each request its deadline, and each attempt an owner that may still be
// used. Not thread-safe.
class WaiterRequests {
 public:
  // All references must outlive this.
  WaiterRequests(LockStore& store, const Owner& owner, const WaitPolicy& policy, const Clock& clock, Rng& rng,
                 StopToken stop)
      : m_store(store), m_owner(owner), m_policy(policy), m_clock(clock), m_rng(rng), m_stop(stop)
  {
  }

  struct Answer {
    Result<Attempt> attempt;
    Instant sent_at;
  };
  // Sends one attempt. Repeats an attempt whose vote was split within the time of one answer, while a late grant would still leave
  // enough of its lease.
  Answer acquire(const LockCandidate& candidate, const AcquireOptions& options);
  Result<Done> await_replicas(const LockCandidate& candidate, Instant sent_at);
  // Leaves the queues of all candidates but `kept`, and gives their locks back.
  void release_all_but(LockCandidates& candidates, const LockCandidate* kept);
  void drop_connection() { m_store.drop_connection(); }

  // The owner of the last attempt. The reference stays valid; the value may change with each attempt.
  [[nodiscard]] const Owner& owner() const { return m_owner; }
  [[nodiscard]] CallLimits limit() const { return limit_from(m_clock.now()); }

  void server_has_answered() { m_server_has_answered = true; }
  [[nodiscard]] bool has_server_answered() const { return m_server_has_answered; }

 private:
  [[nodiscard]] CallLimits limit_from(Instant now) const;

  LockStore& m_store;
  Owner m_owner;
  bool m_needs_fresh_owner = false;
  bool m_server_has_answered = false;
  const WaitPolicy& m_policy;
  const Clock& m_clock;
  Rng& m_rng;
  const StopToken m_stop;
};

}  // namespace rlock
