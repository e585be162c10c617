// SPDX-License-Identifier: Apache-2.0
// Hears what is said to one owner about all the locks it waits for, over one connection, and notes at each place what
// is to be asked. A word is a hint; so is its absence.
#pragma once

#include "lock/lock_candidates.h"

#include <memory>
#include <optional>
#include <span>

namespace rlock {

class WaitNotifications {
 public:
  // All must outlive it.
  WaitNotifications(LockStore& store, std::span<const LockSpec> specs, const Owner& owner, LockCandidates& places,
                    const Clock& clock)
      : m_store(store), m_specs(specs), m_owner(owner), m_places(places), m_clock(clock)
  {
  }

  [[nodiscard]] bool are_open() const { return m_listener != nullptr; }
  [[nodiscard]] int fd() const { return m_listener ? m_listener->fd() : -1; }  // readable: hear()

  // Listens from now on, and asks the queues whether we still are in line. Where we are not, or where that is not
  // possible, the places are to be asked soon.
  void open(const CallLimits& limit);
  void close();

  // Takes what has arrived. True: we are first in one of the lines now.
  bool hear();

  // What goes on hearing what is said to the owner. Null: there is none, or it listens for an earlier owner.
  std::unique_ptr<Listener> hand_on() { return m_listens_for == m_owner ? std::move(m_listener) : nullptr; }

 private:
  void make_sure(LockCandidate& place, const CallLimits& limit);
  void hear_releases(LockCandidate& place, const CallLimits& limit);

  LockStore& m_store;
  const std::span<const LockSpec> m_specs;
  const Owner& m_owner;
  LockCandidates& m_places;
  const Clock& m_clock;
  std::unique_ptr<Listener> m_listener;  // for all of m_specs
  std::optional<Owner> m_listens_for;    // the owner when the listener was opened
};

}  // namespace rlock
