// SPDX-License-Identifier: Apache-2.0
// The interface of an engine that keeps locks.
//
// Each call is one try that does not wait for the lock, and that ends at its deadline at the latest. An owner, or a nested hold,
// that was released must not be used for another attempt, because a late release would end the later grant.
//
// Leases: each grant and renewal tells its lease (LeaseTerm), which may be shorter than the ttl that was asked for, and may
// count from an earlier moment. Holders count on what they were given, never on what they asked for.
//
// What another client sees as the ttl of a hold (LockState, Busy) is never less than what the holder counts on. It is the end of
// the hold where the store ends holds by its own clock. Where the store ends a hold with the presence of its client (etcd,
// ZooKeeper), no client but the holder knows the last proof, so the ttl is a bound: of a hold that is renewed, the whole lease,
// whenever it was renewed; of a fixed lease, its end by the clock of the holder's host. The hold may end earlier.
//
// Errors mean "unknown": the request may have happened. Every request may be sent again (same answer, same state). After
// an Error of acquire or reenter, release the same owner or hold. Besides the errors of the network, ErrorCode::config
// means that the key holds something that is no lock of this kind.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>
#include "base/clock.h"
#include "base/defaults.h"
#include "base/result.h"
#include "lock/event_log.h"
#include "lock/finding.h"
#include "lock/marker.h"
#include "lock/past_run.h"
#include "lock/requests.h"

namespace rlock {

// Receives the messages that a store sends to one owner about its locks: hand-overs, release requests, releases.

// The message with which a store hands a lock over to a waiter. The lock belongs to the waiter then, for a short lease.
struct Handover {
  std::uint64_t fence;
  std::chrono::microseconds at;  // when, by the server's clock, since 1970
  Millis lease;
};

// What the messages about one lock since the last call of heard() mean. Messages may be lost, so a hint mostly says when to ask
// the store.
struct Hint {
  std::optional<Millis> look_in;  // ask the store after this time; nullopt: no message says so
  bool next = false;              // the owner is first in the queue
  bool quick = false;             // beside next: the last hold of the lock was short
  std::optional<Millis>
      confirm_within;  // ask after this time, in which a hand-over is confirmed or (`next`) the lock is renewed
  std::optional<Handover>
      handover;  // the last hand-over, beside look_in; nullopt: none, or another message says to ask
};
using Hints = std::vector<Hint>;  // one for each lock, in the order of the specs given to LockStore::listen

// Ownership: the caller of LockStore::listen owns the listener, which may outlive the store's connection. Threads: not
// thread-safe.
class Listener {
 public:
  virtual ~Listener() = default;
  [[nodiscard]] virtual int fd() const = 0;  // readable: heard() may return a hint
  // Takes the messages that have arrived, or some of them if there are very many. Does not block. After an Error the listener is
  // useless.
  virtual Result<Hints> heard(const Clock& clock) = 0;
  // After the return, each release and deletion of lock number `which` gives a hint. rlock hands a lock over to a waiter
  // directly, so only foreign clients and the end of a queue announce a release. May be called again.
  virtual Result<Done> hear_releases(std::size_t which, const CallLimits& limit) = 0;
  // For a holder: after the return, for each lock, the messages to its owner, a grant that found no holder and, if the lock is
  // exclusive, a release give a hint. `owners`: of the locks, in their order. May be called again.
  virtual Result<Done> hear_as_holder(std::span<const Owner> owners, const CallLimits& limit) = 0;
};

// What a store is: its engine says this once.
struct Traits {
  // The store ends a hold with the presence of its client, so that a ttl is a bound (see the head).
  bool ends_holds_with_clients = false;
  // It serves so few connections at once that waiters far back in a queue must close theirs.
  bool spares_connections = false;
  // acquire itself releases an attempt that was not granted, as a quorum does. Then the next attempt needs a fresh owner.
  bool releases_refused_attempts = false;
  // Another server may take over. Then requests may go without an answer for longer than a short lease lasts.
  bool may_fail_over = false;
  // The scripts run on a node of a Redis cluster, which has other commands for messages.
  bool is_cluster = false;
  // An acquire must ask first whether the user may also renew, release and hand over (acl_check_cmd of Redis).
  bool checks_rights = false;
  // The store keeps locks alone. Elsewhere what has the shape of a foreign lock may be the data of another program.
  bool has_only_locks = false;
  // It has a place for more runs of a lock than its event log holds.
  bool can_keep_runs = true;
  // It has one event log of each lock (find_logs, read_logs).
  bool has_event_log = true;
  // It can be one of several servers of which a quorum must agree (raise_fence, marker), and offers all that a quorum offers.
  bool can_join_quorum = false;
};

// The answer of a store that does not offer what a verb needs.
inline Error not_offered()
{
  return {ErrorCode::config, "the server does not offer what this verb needs (give another server with -S)"};
}

class LockStore {
 public:
  virtual ~LockStore() = default;

  virtual Result<Attempt> acquire(const LockSpec& spec, const Owner& owner, const AcquireOptions& options,
                                  const CallLimits& limit) = 0;
  // Adds a nested hold if the owner holds the lock now. Never acquires a free lock, because then the outer run would not notice
  // that its lock was lost.
  virtual Result<ReentryResult> reenter(const LockSpec& spec, const Hold& hold, const CallLimits& limit) = 0;
  // Whether the owner is in the queue of the lock, and has missed no message since its last request. A waiter asks once, after it has
  // subscribed.
  virtual Result<bool> is_queued(const LockSpec& spec, const Owner& owner, const CallLimits& limit) = 0;
  virtual Result<Renewal> renew(const LockSpec& spec, const Owner& owner, const RenewOptions& options,
                                const CallLimits& limit) = 0;
  // Renews the first of these locks, and as many of those behind it as need no further round trip. Returns the answers in the order
  // of `calls`; locks without an answer were not asked about.
  virtual std::vector<Result<Renewal>> renew_each(std::span<const RenewalCall> calls, const CallLimits& limit)
  {
    return {renew(calls.front().spec, calls.front().owner, calls.front().options, limit)};
  }
  // As renew(), for one hold. NotHeld also if the owner has only other holds. The default is for engines without holds.
  virtual Result<Renewal> renew_hold(const LockSpec& spec, const Hold& hold, const RenewOptions& options,
                                     const CallLimits& limit)
  {
    return renew(spec, hold.owner, options, limit);
  }
  // Releases the hold. A waiting owner, passed as its outermost Hold, leaves the queue.
  virtual Result<Release> release(const LockSpec& spec, const Hold& hold, const ReleaseOptions& options,
                                  const CallLimits& limit) = 0;
  // Takes attempts back: releases the outermost hold of the owner on each lock, because no job has begun. Returns the answers in
  // the order of `specs`. An engine may need one round trip for all.
  virtual std::vector<Result<Release>> release_each(std::span<const LockSpec* const> specs, const Owner& owner,
                                                    const CallLimits& limit)
  {
    std::vector<Result<Release>> answers;
    for (const LockSpec* spec : specs) {
      answers.push_back(release(*spec, owner, {.result = {.outcome = Outcome::unused}}, limit));
    }
    return answers;
  }
  virtual Result<LockState> inspect(const LockName& name, const CallLimits& limit) = 0;
  // After the return the listener receives the messages to the owner about each of these locks, over one connection.
  virtual Result<std::unique_ptr<Listener>> listen(std::span<const LockSpec> specs, const Owner& owner,
                                                   const CallLimits& limit) = 0;
  // Drops the connection, so that the next request opens a new one. Holds, and a session of the engine, stay.
  virtual void drop_connection() = 0;

  [[nodiscard]] virtual Traits traits() const { return {}; }
  // Waits until LockSpec::sync is satisfied. Call this right after a grant; after an Error release the lock.
  virtual Result<Done> await_replicas(const LockSpec& spec, const CallLimits&)
  {
    return spec.sync.replicas == 0 ? Result(Done{})
                                   : Error{ErrorCode::config, "this server has no replicas (leave out --sync)"};
  }
  // Ends the store's threads until the next request, so that the process can fork.
  virtual void stop_threads() {}
  // A store may keep nothing for long for a client that is gone (the sessions of ZooKeeper). Then a process must keep a fixed lease
  // that is longer, or what --min-hold keeps (run/keeper.h). How long such leases of this client last when that process dies.
  // nullopt: there is none.
  [[nodiscard]] virtual std::optional<Millis> lasts_without_keeper() const { return std::nullopt; }
  // Keeps these leases until each of them is over or released. False: one ended earlier. To be called in a fork, in which no connection
  // of the store is open, and which calls nothing else of the store.
  virtual bool keep_leases() { return true; }

  // What one kind of engine can; ErrorCode::config from another one.
  // Of a member of a quorum, whose grants share one fencing number: if the owner holds the lock, later holders get a number greater
  // than `fence`. False: the owner does not hold the lock.
  virtual Result<bool> raise_fence(const LockSpec&, const Owner&, std::uint64_t /*fence*/, const CallLimits&)
  {
    return Error{ErrorCode::config, "such a server is no part of a quorum (give it alone)"};
  }
  // Of a member of a quorum: whether its server may have lost data.
  virtual Result<DataAge> marker(const MarkerNews&, const CallLimits&)
  {
    return Error{ErrorCode::config, "such a server is no part of a quorum (give it alone)"};
  }
  // `rlock doctor`: whether the server is fit to keep locks, as the store itself knows, in the order in which people read it. The texts
  // may quote the server. Changes nothing there.
  virtual Result<std::vector<Finding>> check_server(const CallLimits&)
  {
    return Error{ErrorCode::config, "this store does not know how to check its server"};
  }
  // For locks on trial, of `rlock doctor` and `rlock bench`: deletes all that the store keeps of a lock of the kind Plain that no
  // other client uses.
  virtual Result<Done> erase(const LockName&, const CallLimits&)
  {
    return Error{ErrorCode::config, "this store deletes no lock"};
  }

  // What operators ask for, and runs for their history (keep_runs, note_skipped, past_runs). The defaults are for engines that do
  // not offer it.

  // Carries out one step of `rlock force-unlock`. Each step also deletes a hold that only --min-hold keeps. May be sent again.
  virtual Result<ForceAnswer> force(ForceStep, const ForceCall&, const CallLimits&) { return not_offered(); }
  // The locks that are held and whose name matches the glob, sorted by name.
  virtual Result<std::vector<LockState>> list(std::string_view /*pattern*/, const PerAnswer&) { return not_offered(); }
  // The state of each of these locks that is held, in the order of `names`. Unlike list(), the cost does not depend on what else
  // the server stores.
  virtual Result<std::vector<LockState>> list_held(std::span<const LockName> /*names*/, const PerAnswer&)
  {
    return not_offered();
  }
  // The state of each of these locks, held or free, in the order of `names`. What is no lock is left out.
  virtual Result<std::vector<LockState>> states_of(std::span<const LockName> /*names*/, const PerAnswer&)
  {
    return not_offered();
  }
  // The locks that the server knows and whose name matches the glob, sorted: those that are held, those whose events or runs it
  // keeps, and those of whose success it knows for `rlock once`.
  virtual Result<std::vector<LockName>> find_known(std::string_view /*pattern*/, const PerAnswer&)
  {
    return not_offered();
  }
  // The locks whose name matches the glob and which have an event log, sorted.
  virtual Result<std::vector<LockName>> find_logs(std::string_view /*pattern*/, const PerAnswer&)
  {
    return not_offered();
  }
  // For each query the entries after EventLogQuery::after, the oldest first.
  virtual Result<std::vector<std::vector<EventLogEntry>>> read_logs(std::span<const EventLogQuery>, const CallLimits&)
  {
    return not_offered();
  }
  // For each lock its runs that are over. A lock that cannot be inspected has no runs; if there is no other lock, its Error is
  // returned.
  virtual Result<std::vector<LockHistory>> past_runs(std::span<const LockName>, LogPart, const PerAnswer&)
  {
    return not_offered();
  }
  // Copies the runs that are over from the event log, which forgets them by their number, to a list of runs that is kept for
  // `history` after the last copy. May be sent again: no run is read twice.
  virtual Result<Done> keep_runs(const LockName&, Millis /*history*/, const PerAnswer&) { return not_offered(); }
  // Deletes what the server keeps of a lock that is free, of whatever kind it was: its runs, and its number of permits. Deletes
  // nothing of a lock that is held.
  virtual Result<Forgotten> forget_runs(const LockName&, const CallLimits&) { return not_offered(); }
  // Logs a run that did not begin. `owner`: the owner of its last attempt. LockSpec::who names what would have run.
  virtual Result<Done> note_skipped(const LockSpec&, const Owner& /*owner*/, const SkippedRun&, const CallLimits&)
  {
    return not_offered();
  }
  // Deletes the success that `rlock once` remembers. False: there was none.
  virtual Result<bool> forget_success(const LockName&, const CallLimits&) { return not_offered(); }
};

// The deadline of a waiter's request. Pure functions and their constants.

// How long a waiter that ends tries to give its lock back or to leave its queue. After that the ttl does it.
constexpr Millis give_back_timeout{500};

// The least time for an answer, however little of the wait is left.
constexpr Millis least_answer_time{40};

// The deadline of a request that is sent now. `until`: the end of the wait; nullopt: the server has not answered yet, so the
// request gets the whole server timeout.
inline Instant answer_deadline(Instant now, Millis server_timeout, std::optional<Instant> until)
{
  const Instant full = now + server_timeout;
  return until ? std::clamp(*until, std::min(now + least_answer_time, full), full) : full;
}

}  // namespace rlock
