// SPDX-License-Identifier: Apache-2.0
// What a waiter does between two requests. Private to lock.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include "lock/lock_candidates.h"
#include "lock/store.h"
#include "lock/waiting.h"

namespace rlock {

// Receives the messages to one waiter about all its lock candidates over one connection, and moves the time of each
// candidate's next request accordingly. Messages may be lost. Not thread-safe.
class WaitNotifications {
 public:
  // All arguments must outlive this.
  WaitNotifications(LockStore& store, std::span<const LockSpec> specs, const Owner& owner, LockCandidates& candidates,
                    const Clock& clock)
      : m_store(store), m_specs(specs), m_owner(owner), m_candidates(candidates), m_clock(clock)
  {
  }

  [[nodiscard]] bool is_open() const { return m_listener != nullptr; }
  [[nodiscard]] int fd() const { return m_listener ? m_listener->fd() : -1; }  // readable: call receive()

  // Subscribes, and checks that the waiter is still in each queue, because the store may have handed a lock over before the
  // subscription, or told the waiter to watch a hand-over. A candidate whose check fails is due soon.
  void open_and_check(const CallLimits& limit);
  void close();

  // Takes the messages that have arrived. Returns whether the waiter may now be first in one of the queues. first_of_quick: the last
  // hold of that lock was short.
  enum class Place { behind, first, first_of_quick };
  Place receive();

  // Gives the listener to the caller. nullptr: there is none, or it listens for an earlier owner.
  std::unique_ptr<Listener> take_listener() { return m_listens_for == m_owner ? std::move(m_listener) : nullptr; }

 private:
  void check(LockCandidate& candidate, const CallLimits& limit);
  void hear_releases(LockCandidate& candidate, const CallLimits& limit);

  LockStore& m_store;
  const std::span<const LockSpec> m_specs;
  const Owner& m_owner;
  LockCandidates& m_candidates;
  const Clock& m_clock;
  std::unique_ptr<Listener> m_listener;  // for all of m_specs
  std::optional<Owner> m_listens_for;    // the owner when m_listener was opened
};

// What a waiter does between two requests: it hears messages, and lets its caller prepare a job, show the wait and stop the
// holder. Not thread-safe.
class WaiterRest {
 public:
  // All references must outlive this.
  WaiterRest(const WaitPolicy& policy, const Clock& clock, StopToken stop, WaitObserver& observer,
             LockCandidates& candidates, WaitNotifications& notifications)
      : m_policy(policy),
        m_clock(clock),
        m_stop(stop),
        m_observer(observer),
        m_candidates(candidates),
        m_notifications(notifications)
  {
  }

  // Notes that the waiter is first in line since the request that was sent at `sent_at`.
  void first_in_line(Instant sent_at);
  // Returns when a request is due, when a message has come, or at `until`, the end of the wait.
  Wake rest(Instant until);

 private:
  void call_observer(Instant now);
  [[nodiscard]] Instant stopper_due() const;
  void stop_holder();
  void receive();

  const WaitPolicy& m_policy;
  const Clock& m_clock;
  const StopToken m_stop;
  WaitObserver& m_observer;
  LockCandidates& m_candidates;
  WaitNotifications& m_notifications;
  Instant m_prepare_at = far_future;  // when the observer may prepare its job; set while the waiter is first
};

}  // namespace rlock
