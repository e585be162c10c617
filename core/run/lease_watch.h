// SPDX-License-Identifier: Apache-2.0
// The watchdogs of a job's locks, as one: each moves its own lease, and the lifeline ends with the first.
#pragma once

#include "run/common_lease.h"
#include "run/lock_set.h"

namespace rlock {

// Used from the main thread. What it is given must outlive it.
class LeaseWatch {
 public:
  LeaseWatch(const RunRequest& request, const RunContext& context, LockSet& lock_set);
  ~LeaseWatch();
  LeaseWatch(const LeaseWatch&) = delete;
  LeaseWatch& operator=(const LeaseWatch&) = delete;

  [[nodiscard]] Instant due() const { return m_due; }  // when begin() is to be called; far_future: all are watched
  void begin();
  void rest();  // before a fork whose child goes on: nothing of ours runs. Due again at once, unless a lock is lost

 private:
  const RunRequest& m_request;
  const RunContext& m_context;
  LockSet& m_lock_set;
  Instant m_due;
  CommonLease m_lease;
};

}  // namespace rlock
