// SPDX-License-Identifier: Apache-2.0
// A store whose servers know which clients live, by monotonic clocks: etcd by leases, ZooKeeper by sessions. There a hold
// ends with a presence, and never by a time of day, which such a store does not have.
//
// A presence is one thing in the store (a key with a lease, an ephemeral node) that exists until its lease has run out without a
// renewal, or until it is removed. The engine binds each owner of the record to a presence, in the record: a hold, a claim after a
// hand-over, and a place in the queue are over when the presence is gone. An adapter knows nothing of that.
//
// What the engine does with it, for one lock:
//   take      read · gone() of what the record names, if anything · make() · write_if that needs the new presence
//   wait      the same; then prove() before a third of the lease has passed
//   renew     prove() · read · gone() · write_if that needs the presence
//   release   write_if · remove(), when no lock of this client needs the presence any longer
//   --min-hold, `acquire --lease`: make(…, Keeping::unkept), which outlives its process
//   renew by another process (`rlock renew`, a keeper): make() · read · gone() · write_if that binds the owner to both presences
//
// What the lock rests on:
// * Gone is final: an id never comes back, so an adapter draws a new one for each presence (ZooKeeper: not the sequence number
//   alone; etcd: the lease id and the create revision, or a random name).
// * While `lease.from + lease.length` of an answer of make() or prove() has not passed, by this client's CLOCK_BOOTTIME, no client
//   is told by gone() that the presence is gone, whatever happens to servers and links, except after remove().
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>
#include "base/clock.h"
#include "base/defaults.h"
#include "base/result.h"
#include "lock/lease_budget.h"

namespace rlock::record {

// Drawn by the adapter; opaque for the engine, which writes it into records; any bytes, at most 64 of them. Every client may read
// it, so it must not be enough to end or to keep the presence where the store has a secret for that (the password of a session of
// ZooKeeper, which stays in the adapter).
using PresenceId = std::string;

enum class Keeping {
  kept,  // prove() is called in time, at least every third of the lease
  // No client calls prove(): a session of its own, which lasts for its lease after this process has ended. Where the store has no
  // session as long as that, a process must keep it, or it ends earlier (keep_leases).
  unkept,
};

// A presence with its lease: as long as the store granted, which may be longer or shorter than what was asked for, and counted from
// before the first byte of the request from which the store counts.
struct Presence {
  PresenceId id;
  LeaseTerm lease;
};

// The presence does not exist.
struct NoLonger {};
using Proof = std::variant<LeaseTerm, NoLonger>;

// Threads: as for the Backend to which it belongs. Each call ends at its deadline at the latest. An Error means "unknown": the
// request may have happened. A presence that may exist after an Error of make() ends with its lease. The destructor ends no
// presence, because another process may keep its hold by then; what was not removed ends with its lease.
class Presences {
 public:
  virtual ~Presences() = default;

  // A new presence with about this lease. An adapter may put the presence into the store only with the next write_if that needs it,
  // in the same transaction, if its lease or session exists already: nothing else refers to it before. Kept presences of one
  // Backend with the same lease may share a session. Errors: ErrorCode::config: the store cannot have such a lease at all.
  virtual Result<Presence> make(Millis lease, Keeping keeping, const CallLimits& limit) = 0;

  // Renews a presence that this Presences made, and proves the renewal: an answer of a server that is cut off from the others, or of
  // a leader that was replaced, is no proof. The lease counts from before the first byte of the renewal. Works for unkept ones as well.
  //
  // An Error says nothing about the presence: the earlier lease stands. NoLonger only if a majority of the servers says so.
  //
  // Sources: facts measured with ZooKeeper 3.8 and etcd 3.4 (a follower that was cut off answered pings for 4.4 s after the session
  // had ended; a leader that was stopped answered a keep-alive 2.6 s after it). ZooKeeper: attach the session on a new connection,
  // then commit a setData of the own node with the expected version. etcd: keep-alive, then on the same connection a commit that
  // compares the create revision of the own key: TTL > 0, the same member and raft term in both headers.
  virtual Result<Proof> prove(const PresenceId& id, const CallLimits& limit) = 0;

  // Which of these presences, of any client, are gone, in a state that is not earlier than the record that the last read of this
  // Backend returned. So it is asked on the connection of that read (a server of ZooKeeper may be behind another one); if that
  // connection is no longer there, the call fails with ErrorCode::unreachable instead of asking elsewhere. (A linearizable read of
  // etcd may go to any member.) In any order. What exists at the moment of the answer, or cannot be told, is not in it.
  virtual Result<std::vector<PresenceId>> gone(std::span<const PresenceId> ids, const CallLimits& limit) = 0;

  // Deletes a presence, of this or another client; one that is gone is no error. The engine calls this only when no hold needs the
  // presence: after a release, or in force-unlock after the last proof of the holder has run out.
  virtual Result<Done> remove(const PresenceId& id, const CallLimits& limit) = 0;

  // As of LockStore, of the unkept presences.
  [[nodiscard]] virtual std::optional<Millis> lasts_without_keeper() const { return std::nullopt; }
  virtual bool keep_leases() { return true; }
};

}  // namespace rlock::record
