// SPDX-License-Identifier: Apache-2.0
// What the record engine does in a store with presences (presence.h): makes and proves those of this client, and binds the owners
// in records to them.
//
// Why this is safe, whatever the clocks of clients say:
// * A hold, a claim and a place in the queue are bound to presences, and over when those are gone, which is asked after the record. A
//   grant and a change of the owner's bindings commit only if the owner's presence exists in the same transaction.
// * A holder believes in its hold until the lease of its presence ends, counted from before the last proof; until then no
//   client is told that the presence is gone.
// * force-unlock ends a revoked hold whose presence lives only when the lease has passed since the revocation was committed, by the
//   CLOCK_BOOTTIME of the operator's process: each renewal that the holder was granted was sent before the revocation.
// * A proof that is younger than the state counts only if that state is still the store's: the record is written, whether it changes
//   or not. (Else a hold that was revoked in between would last longer than the operator waits.)
// * The scripts' time is the client's clock, but never earlier than that of an earlier script on the record. It moves with this
//   client's clock from there, so that a record whose time is ahead does not stand still.
//
// What another client is shown as the ttl of a hold is a bound of what its owner counts on, because a proof writes nothing. Of a
// hold that its client renews, it is the whole lease, however long ago the last proof was. Of one that no client renews, it is
// the end of the lease by the clock of the client that took it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/clock.h"
#include "base/result.h"
#include "engine/bound_owners.h"
#include "engine/record_backend.h"
#include "engine/script_host.h"
#include "lock/names.h"

namespace rlock::record {

// What a script is asked to do, as far as presences are concerned.
struct Asked {
  enum class Verb { other, acquire, renew, release, revoke };
  Verb verb = Verb::other;
  std::string owner = {};
  std::string hold = {};
  Millis ttl{0};
  bool is_automatic = false;  // HolderInfo::automatic of an acquire
  // Whether a waiter's presence is the one with which it will hold the lock: its contender cannot get another one.
  bool keeps_presence = false;
};
Asked asked_of(const VerbRequest& request);

// Not thread-safe.
class PresenceKeeper {
 public:
  // Both must outlive it.
  PresenceKeeper(Presences& presences, const Clock& clock) : m_presences(presences), m_clock(clock) {}

  // Before the read: proves the presence that a renewal counts on.
  Result<Done> renew(const Asked& asked, const CallLimits& limit);
  // After the read: the time of the scripts, and which presences are gone.
  Result<Done> complete(const LockName& lock, Snapshot& state, const CallLimits& limit);
  // Before that, for states that were read together: asks for all their presences at once. An error is told by complete().
  void ask_ahead(StatesAndLogs& states, const CallLimits& limit);
  // Before the script: what is over ends, and what is not over lasts. True: this must be written, whatever the script does.
  bool prepare(const Asked& asked, const LockName& lock, LockRecord& record, const Snapshot& state);
  // Those of the holders that the last prepare() has ended, for Change::ended.
  [[nodiscard]] const std::vector<PresenceId>& ended() const { return m_ended; }

  struct Bound {
    bool is_changed = false;              // the bindings must be written
    bool is_stale = false;                // the owner's presence has just ended: the state must be read again
    std::vector<PresenceId> needed = {};  // for the commit
  };
  // After the script: binds the owner in the new record, and makes or proves its presence for that.
  Result<Bound> bind(const Asked& asked, const LockName& lock, const std::string& answer, LockRecord& after,
                     const CallLimits& limit);
  // After the commit: removes the presences that this client no longer needs. False: some end with their lease.
  bool settle(const CallLimits& limit);
  // After a commit that changed the record: removes the unkept presences that it no longer names. Their clients may have ended.
  // False: some end with their lease.
  bool remove_unbound(const CallLimits& limit);
  // Instead of the commit of a release, which the store has refused: both. What the owner held is over with its presences. False: it
  // may not be over, because a presence was not removed, or is that of another process.
  bool end_without_commit(const CallLimits& limit);
  // After a commit that found these presences gone.
  void lost(const std::vector<PresenceId>& ids);

  [[nodiscard]] std::optional<LeaseTerm> lease_of(const std::string& owner) const;

 private:
  enum class Use { waits, holds };
  struct User {
    std::string lock;
    std::string owner;
    std::string hold;
    friend auto operator<=>(const User&, const User&) = default;  // NOLINT(modernize-use-nullptr): false alarm
  };
  struct Wanted {
    Millis lease;
    Keeping keeping;
    Use use;
  };
  struct Own {
    Presence presence;
    Wanted made_for;
    std::map<User, Use> users;
    [[nodiscard]] bool serves(const std::string& owner, Use use) const;
  };
  struct Revocation {
    std::string fence;  // of the hold: the same owner may get the lock again, and the mark stays
    Instant known_at;
    Millis lease;
  };
  using Lock = std::pair<std::string, std::string>;  // a lock, and an owner of it

  // The presence with which the owner holds locks, or else with which it waits; nullptr: none of this client.
  [[nodiscard]] const Own* find(const std::string& owner) const;
  Own* find(const std::string& owner);
  Own* fitting(const Asked& asked, const Wanted& wanted);
  // The owner's presence; `own` is nullptr: the one on which the record counts is gone.
  struct Proven {
    Own* own;
    bool since_read;  // the proof is younger than the state, on which the owner may not count any longer
  };
  Result<Proven> make(const Wanted& wanted, const CallLimits& limit);
  Result<bool> prove(Own& own, const CallLimits& limit);
  Result<Proven> own_for(const Asked& asked, const Wanted& wanted, const LockRecord& after, const CallLimits& limit);
  Result<Bound> bind_to(const Asked& asked, const LockName& lock, const Wanted& wanted, LockRecord& after,
                        const CallLimits& limit);
  Result<Bound> keep_after_release(const Asked& asked, const LockName& lock, const Standing& standing,
                                   LockRecord& after, const CallLimits& limit);
  void leave_lock(const Asked& asked, const LockName& lock);
  [[nodiscard]] std::int64_t shown_end_ms(const LeaseTerm& lease) const;
  Bound unbind_hold(const Asked& asked, const LockName& lock, LockRecord& after);
  void note_revocation(const Asked& asked, const LockName& lock, const LockRecord& after);
  Result<Bound> bind_owner(const Asked& asked, const LockName& lock, const std::string& answer, LockRecord& after,
                           const CallLimits& limit);

  Presences& m_presences;
  const Clock& m_clock;
  std::int64_t m_time_us = 0;  // of the scripts at m_time_at
  Instant m_time_at{};
  std::vector<Own> m_own;
  std::map<std::string, std::int64_t>
      m_ahead;  // by lock: how far its time is before this client's clock, in microseconds
  std::map<Lock, Revocation> m_revocations;
  std::optional<std::pair<Lock, Revocation>> m_revoked;  // by the commit that is under way
  std::set<User> m_leaving;                              // with the commit that is under way
  std::vector<PresenceId> m_ended;
  std::vector<PresenceId> m_unkept_before;  // that the record of the last read names
  std::vector<PresenceId> m_unbound;        // of those, by the commit that is under way
};

}  // namespace rlock::record
