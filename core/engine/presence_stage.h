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
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/clock.h"
#include "base/result.h"
#include "engine/bound_owners.h"
#include "engine/record_round.h"
#include "lock/names.h"

namespace rlock::record {

// The stage of a store with presences.
class PresenceStage final : public Stage {
 public:
  // Both must outlive it.
  PresenceStage(Presences& presences, const Clock& clock) : m_presences(presences), m_clock(clock) {}

  // Proves the presence that a renewal counts on.
  Result<Done> begin(const Work& work, const CallLimits& limit) override;
  // The time of the scripts, and which presences are gone.
  Result<Done> after_read(std::span<State> states, const CallLimits& limit) override;
  // What is over ends, and what is not over lasts.
  Result<bool> before_script(Round& round, const CallLimits& limit) override;
  // Binds the owner in the new record, and makes or proves its presence for that. The round is stale where that has just ended.
  Result<Done> after_script(Round& round, const CallLimits& limit) override;
  // Removes the presences that this client no longer needs, and the unkept ones that the record no longer names: their clients may have
  // ended. A release that the store has no room for needs no commit, where all that the owner held ends with them.
  Result<Done> after_commit(Round& round, const CallLimits& limit) override;

  [[nodiscard]] std::optional<LeaseTerm> lease_of(const std::string& owner) const;

 private:
  // What a script is asked to do, as far as presences are concerned.
  struct Asked {
    enum class Verb { other, acquire, renew, release, revoke };
    Verb verb = Verb::other;
    std::string owner = {};
    std::string hold = {};
    Millis ttl{0};
    bool is_automatic = false;  // HolderInfo::automatic of an acquire
  };
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
  Own* fitting(const Wanted& wanted);
  // The owner's presence; `own` is nullptr: the one on which the record counts is gone.
  struct Proven {
    Own* own;
    bool since_read;  // the proof is younger than the state, on which the owner may not count any longer
  };
  static Asked asked_of(const Work& work);
  void fit_time(State& state);
  Result<Proven> make(const Wanted& wanted, const CallLimits& limit);
  Result<bool> prove(Own& own, const CallLimits& limit);
  void forget(std::span<const PresenceId> gone);
  Result<Proven> own_for(const Wanted& wanted, const LockRecord& after, const CallLimits& limit);
  Result<Done> bind(Round& round, const CallLimits& limit);
  Result<Done> bind_to(Round& round, const Wanted& wanted, const CallLimits& limit);
  Result<Done> keep_after_release(Round& round, const Standing& standing, const CallLimits& limit);
  void leave_lock(const LockName& lock);
  void unbind_hold(Round& round);
  void note_revocation(const Round& round);
  [[nodiscard]] bool is_revocation_over(const Round& round) const;
  bool remove_unbound(const CallLimits& limit);
  bool finish_leaving(const CallLimits& limit);
  void do_without_commit(Round& round, const CallLimits& limit);

  Presences& m_presences;
  const Clock& m_clock;
  std::vector<Own> m_own;
  std::map<std::string, std::int64_t>
      m_ahead;  // by lock: how far its time is before this client's clock, in microseconds
  std::map<Lock, Revocation> m_revocations;
  Asked m_asked;  // by the request
  // Of the round, with its commit.
  std::optional<std::pair<Lock, Revocation>> m_revoked;
  std::set<User> m_leaving;
  std::vector<PresenceId> m_unbound;  // unkept presences that the record names no longer
};

}  // namespace rlock::record
