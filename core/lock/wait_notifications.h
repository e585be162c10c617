// SPDX-License-Identifier: Apache-2.0
// Receives the messages to one waiter about all its lock candidates over one connection, and moves the time of each
// candidate's next request accordingly. Messages may be lost. Not thread-safe.
#pragma once

#include "lock/lock_candidates.h"
#include "lock/store.h"

#include <memory>
#include <optional>
#include <span>

namespace rlock {

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
  // subscription. A candidate whose check fails is due soon.
  void open(const CallLimits& limit);
  void close();

  // Takes the messages that have arrived. True: the waiter may now be first in one of the queues.
  bool receive();

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

}  // namespace rlock
