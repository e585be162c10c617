// SPDX-License-Identifier: Apache-2.0
// The requests that a client sends about one lock, and the answers of a store. Plain values.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include "lock/holder.h"
#include "lock/lease_budget.h"
#include "lock/lock_kind.h"
#include "lock/names.h"
#include "lock/past_run.h"
#include "lock/period.h"

namespace rlock {

// A lock as an operator sees it: its holders, its waiters, its lease. Plain values; times are by the server's clock.

// A holder of a lock.
struct Holder {
  Owner owner;
  std::int64_t count;              // holds of this owner; > 1 when nested
  std::optional<HolderInfo> info;  // nullopt: a foreign client, which stores none
  std::optional<Millis> age =
      std::nullopt;  // time since the grant, by the server's clock; nullopt: unknown, or not asked for
  bool revoked =
      false;  // its renewals are refused, so it ends with its ttl (ForceStep::revoke); false if not asked for
};

// That many waiters in front listen. Those behind may close their connections (Traits::spares_connections).
inline constexpr std::uint64_t listening_waiters = 8;

// So many later callers may be put in front of a waiter before it counts as starved.
inline constexpr std::int64_t most_passed = 100;

struct Waiter {
  Owner owner;
  std::optional<HolderInfo> info;
  // False: it waits behind those that must listen, and asks now and then. Until it comes nearer, the store cannot tell it from a
  // dead one.
  bool is_connected = true;
  // How many callers have joined the queue in front of it later, because their priority is greater. Counted for the first few of its
  // priority.
  std::int64_t passed = 0;

  // Whether operators should know that it waits in vain.
  [[nodiscard]] bool is_starved() const { return passed > most_passed; }
};

// The success that `rlock once` remembers of a lock.
struct OnceSuccess {
  std::int64_t at_ms;     // since 1970
  Millis remembered_for;  // from at_ms
  Millis ago;             // time since at_ms
};

struct LockState {
  LockName name;
  LockKind kind;                // Permits: with their number
  std::optional<Millis> ttl;    // nullopt: the lock does not expire; else its end, or a bound (store.h)
  std::uint64_t fence;          // of the only holder; else the last number that the server gave out; 0: none
  std::vector<Holder> holders;  // empty: free; 64 at most
  std::vector<Waiter> waiting;  // in the order of the queue, without those known to be dead; a thousand at most
  std::uint64_t count = holders.size();  // of all holders, including those that `holders` leaves out
  std::vector<Holder> partial = {};      // several servers: holders on too few of them to hold the lock
  bool agreed = false;                   // several servers have agreed on `fence`
  std::optional<OnceSuccess> once = std::nullopt;
  std::vector<PastRun> runs =
      {};  // the runs that are over, the last one first; empty unless asked for (LockStore::past_runs)
  // A record of rlock, or the layout of Redisson, proves that the key is a lock.
  bool proven = true;
  // Not proven, but in a table or collection of ShedLock: held by a program that uses ShedLock.
  bool is_of_shedlock = false;
  NativeFormat beside = NativeFormat::none;

  [[nodiscard]] bool held() const { return !holders.empty(); }
  // Whether an exclusive request, or a request for one permit, could be granted.
  [[nodiscard]] bool has_room() const
  {
    const auto* permits = std::get_if<Permits>(&kind);
    return !held() || (permits != nullptr && count < permits->limit);
  }
};

// The last of `runs` that was not skipped, else the last of them; nullptr: there is none.
const PastRun* last_run(const LockState& state);

// "alice@web1 (pid 71), running ./job.sh", or the owner id of a foreign client. Printable.
std::string describe(const Holder& holder);

// The record of the freeze that holds the lock (rlock freeze); nullptr: a job holds it, or no client. Lives as long as the argument.
const HolderInfo* freeze_of(const LockState& state);
const HolderInfo* freeze_of(const Holder& holder);
const HolderInfo* freeze_of(const std::optional<Holder>& holder);

// The two parts of describe(): "alice@web1 (pid 71)" or the owner id; "running ./job.sh [label]", "kept after …", "freeze: REASON" or nothing.
// Printable.
std::string holder_text(const Owner& owner, const std::optional<HolderInfo>& info);
std::string job_text(const HolderInfo& info);

// A grant counts only when `replicas` replicas have it; else the client gives the lock back. Renewals do not wait for
// replicas: a lost renewal shortens the lease, but the lock is not lost.
struct Sync {
  unsigned replicas = 0;
  Millis within{0};
};

struct LockSpec {
  LockName name;
  LockKind kind;
  Millis ttl;  // the lease that is asked for
  HolderInfo who;
  std::optional<Millis> once;  // a success under this name within that time counts for every caller
  Sync sync = {};              // of one server, or of the one that took over for it
  bool again = false;          // with `once`: run even if a success is remembered
  NativeFormat beside = NativeFormat::none;
  // With `once`: a success counts if it began in this period, or for a waiter, in the period in which the waiter arrived. `once`
  // is how long the server remembers it.
  std::optional<Period> period = std::nullopt;
  // The caller ends as if its time to wait were over when so many others wait already; nullopt: it joins the queue however many wait.
  std::optional<unsigned> max_waiting = std::nullopt;
  // When the lease must end, whenever a waiter gets the lock: `ttl` is counted anew for each attempt.
  std::optional<Instant> ends_at = std::nullopt;
};

struct AcquireOptions {
  bool queues = false;  // join the queue if the lock is busy
  std::uint64_t ticket =
      0;  // Busy::ticket of an earlier answer, which restores the waiter's position in a queue that was lost
};

struct RenewOptions {
  bool only_checks = false;  // asks whether the owner holds the lock, and changes no lease
  bool confirms = false;     // the first renewal of a lease that began with a Handover
  bool stopping = false;     // the owner knows that the lock was requested from it, and is stopping its job
};

// One of several renewals. Only the name, the kind and the ttl of the spec count.
struct RenewalCall {
  LockSpec spec;
  Owner owner;
  RenewOptions options;
};

// A request to release the lock. `by` is for people: "alice@web1 (pid 71)".
struct ForceRequest {
  std::string by;
};

// A lease that an aggregate cannot be made without, so that no engine forgets it.
struct GivenLease : LeaseTerm {
  GivenLease(const LeaseTerm& lease) : LeaseTerm(lease) {}  // NOLINT(*-explicit-*)
};

struct Granted {
  std::uint64_t fence;  // grows with each new holder
  std::int64_t count;   // > 1 when nested
  GivenLease lease;     // as the store gave it: it may be shorter than LockSpec::ttl, and count from an earlier moment
  bool agreed = false;  // several servers have agreed on `fence`
};
using ServerTime = std::chrono::microseconds;  // since 1970, by the server's clock

struct Replaced {
  std::optional<HolderInfo> by;                     // the newer waiter, for people; nullopt: unknown
  std::optional<std::string> freeze_ended_by = {};  // for people; nullopt: the caller is no freeze
};

struct Busy {
  std::optional<Millis> ttl;                      // time until the lock, or the reservation, expires; nullopt: never
  std::optional<Holder> holder;                   // nullopt: the lock is free, but reserved for a moment
  std::uint64_t waiters_ahead = 0;                // in the queue
  std::uint64_t ticket = 0;                       // the arrival in the queue; 0: the caller is not in the queue
  bool silent = false;                            // the holder does not announce its release, so the waiter must poll
  std::optional<Millis> again_in = std::nullopt;  // when to ask again; nullopt: the ttl decides
  std::optional<Millis> watch_in =
      std::nullopt;            // when to ask at the latest, because a waiter ahead may not take a hand-over
  std::string not_ready = {};  // why the servers cannot grant before `again_in`; empty: another client is in the way
  bool split_vote = false;     // several servers: several clients got some of them each, and no client a quorum
  // The caller has left the queue: a newer waiter has its place (HolderInfo::latest), or the caller is a freeze that an operator has ended.
  std::optional<Replaced> replaced = std::nullopt;
  // The time of the answer, to be compared with a later Handover; nullopt: not queued, or another server may answer next.
  std::optional<ServerTime> at = std::nullopt;
  bool tells_end = false;  // a foreign holder, whose end the store tells the waiter
  unsigned permits = 0;    // of permits: how many there are, all of them held; 0: another kind
  std::uint64_t full = 0;  // how many wait, if LockSpec::max_waiting keeps the caller out of the queue; else 0
};
struct AlreadyDone {
  Millis ago;
};  // LockSpec::once: the server remembers a success; the caller holds nothing and is not queued
using Attempt = std::variant<Granted, Busy, AlreadyDone>;

struct Renewed {
  std::optional<LeaseTerm> lease;               // the new one, as in Granted; missing: the store was only asked
  std::optional<ForceRequest> forced;           // another client wants the lock
  std::optional<ServerTime> at = std::nullopt;  // time of the renewal; missing: several servers, or a coarse clock
};
inline constexpr const char* forced_by = "force-unlocked by ";

// Why a hold is gone, as far as it is known.
enum class LossCause {
  gone,                 // it expired or was deleted
  held,                 // NotHeld::detail says by whom
  other_content,        // the key holds NotHeld::detail
  revoked,              // an operator revoked the hold: it lasts until its ttl ends
  hold_released,        // its owner has another hold
  released_with_token,  // by another process
  server_lost_data,
  ended_before_job,
};
struct NotHeld {
  LossCause cause = LossCause::gone;
  std::string detail = {};
  std::optional<ForceRequest> forced = std::nullopt;  // the request that took the lock away; nullopt: none
  std::optional<ServerTime> at = std::nullopt;        // the time of the answer; nullopt: unknown
  std::string besides = {};                           // for people: what else explains it

  [[nodiscard]] bool is_unexplained() const { return cause == LossCause::gone && !forced && besides.empty(); }
};
// For people: "expired or deleted", "now held by …", "force-unlocked by …". Printable.
std::string text_of(const NotHeld& lost);
using Renewal = std::variant<Renewed, NotHeld>;
using ReentryResult = std::variant<Granted, AlreadyDone, NotHeld>;

struct Released {
  bool passed_on = false;  // the server handed the lock over to a waiter
  bool earlier = false;    // an earlier request released it
  // Why the server has no room for how the run ended, of which its history does not tell then; empty: it does.
  std::string untold = {};
};
struct StillHeld {
  std::int64_t count;  // holds that are left
};
struct Dequeued {};  // the caller did not hold the lock, and has left the queue
using Release = std::variant<Released, StillHeld, Dequeued, NotHeld>;

// Whether the caller held the lock until this release or an earlier one. A server that lost the grant in a fail-over may
// still have a holder in its queue.
inline bool was_held(const Release& release)
{
  return std::holds_alternative<Released>(release) || std::holds_alternative<StillHeld>(release);
}

// Whether the release of a lock that is proven to be lost finds that it was released with its token. A release that succeeds only
// now ends what the server has handed over to the place that the holder still had in the queue.
inline bool was_released_before(const Release& release)
{
  const auto* const released = std::get_if<Released>(&release);
  return was_held(release) && (released == nullptr || released->earlier);
}

struct ReleaseOptions {
  Millis keep{0};          // --min-hold: how long the lock stays taken after its last hold has ended
  bool succeeded = false;  // the server must remember a success for LockSpec::once
  bool announced = true;   // false: the caller takes back an attempt, which is no news for other clients
  Millis ran{0};           // since the run began, if the success counts from then (LockSpec::period)
  RunResult result = {};   // for the event log
  bool late =
      false;  // an earlier request found the lease over, but it was not over when the run ended: only tells the result
};

// How a server takes a lock from its holder: the steps of `rlock force-unlock`.
enum class ForceStep {
  ask,   // tell the owner that the lock is wanted
  join,  // the same, unless the owner has got a request of another client already
  look,  // change nothing
  revoke,  // refuse the owner's renewals from now on: its hold ends with its ttl. Repeat this step, because a server may lose data
  take,  // delete the hold at once
};
// The name of the step in the scripts.
constexpr std::string_view name_of(ForceStep step)
{
  constexpr std::array<std::string_view, 5> names{"ask", "join", "look", "revoke", "take"};
  return names[static_cast<std::size_t>(step)];
}
struct ForceCall {
  LockName name;
  LockKind kind;
  Owner owner;        // the holder
  std::string by;     // the operator, for people
  Millis stands_for;  // the server remembers the request at least so long
};
struct ForceHeld {  // the owner holds the lock
  Holder holder;
  std::int64_t listening = 0;                  // number of subscribers that got the request
  std::optional<Millis> lasts = std::nullopt;  // time until the hold expires; nullopt: never
  std::optional<Millis> silent_for =
      std::nullopt;       // time since the owner last reported that it stops its job; nullopt: never
  bool is_rlock = false;  // the owner is an rlock, whose renewals the server can refuse
};
struct ForceBroken {  // the hold was deleted
  Holder holder;
  bool job_was_over = false;  // only --min-hold still kept the lock
};
struct ForceFree {};   // the lock has no holder
struct ForceChanged {  // another owner holds the lock
  Holder holder;
};
using ForceAnswer = std::variant<ForceHeld, ForceBroken, ForceFree, ForceChanged>;

// How much of the event log of a lock to read.
enum class LogPart { all, end };  // end: enough for the last run of most locks

// What was there and is deleted.
struct Forgotten {
  bool runs = false;
  bool permits = false;  // their number
};

}  // namespace rlock
