// SPDX-License-Identifier: Apache-2.0
// Where locks are kept. One try each, no waiting, over by the limit.
//
// An Error means "unknown": the request may have happened. Every request is safe to send again (same answer,
// same state), and a failed acquire or reenter is followed by a release with the same hold.
//
// An owner, or a nested hold, that was released is never used for another attempt: its release may be delivered late, and
// would end the later grant. The note that the release leaves would also pass for a release of the later grant.
#pragma once

#include "base/result.h"
#include "base/stop.h"
#include "lock/holder.h"
#include "lock/mode.h"
#include "lock/names.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rlock {

// A lock is taken only once so many replicas have it; who has it without them gives it back. Renewals do not wait for
// them: a lost one costs the time since the one before, not the lock.
struct Sync {
  unsigned replicas = 0;
  Millis within{0};  // how long they have for it
};

struct LockSpec {
  LockName name;
  Mode mode;
  Millis ttl;
  HolderInfo who;
  std::optional<Millis> once;  // somebody's success under this name within that time is ours as well
  Sync sync = {};              // of one server, or one that has taken over for it
  bool again = false;          // with `once`: an earlier success does not count
  bool stopping = false;       // of a renewal: the owner has heard that the lock is wanted from it, and stops its job
};

// How to ask for a lock: once, or in line with others.
struct AcquireOptions {
  bool queues = false;
  std::uint64_t ticket = 0;  // of an earlier Busy: our arrival, which survives a queue that was lost
};

// A holder as the server shows it. `info` is missing for foreign clients, which tell nothing.
struct Holder {
  Owner owner;
  std::int64_t count;
  std::optional<HolderInfo> info;
};

// Who asked the holder to let go, in words for people ("alice@web1 (pid 71)").
struct ForceRequest {
  std::string by;
};

struct Granted {
  std::uint64_t fence;  // grows with every new holder
  std::int64_t count;   // > 1 when nested
  bool agreed = false;  // several servers have agreed on the number
};
struct Busy {
  std::optional<Millis> ttl;                      // of the lock, or of what keeps it from us; missing: it has none
  std::optional<Holder> holder;                   // missing: free, but left to others for a moment
  std::uint64_t place = 0;                        // how many wait before us
  std::uint64_t ticket = 0;                       // our arrival; 0: we are not in line
  bool silent = false;                            // whoever lets go of it tells nobody: it has to be asked for
  std::optional<Millis> again_in = std::nullopt;  // when to ask again, where the store knows better than the ttl tells
  std::string unfit = {};  // no client is in the way: why the servers cannot grant it before `again_in`
  bool tied = false;       // no client holds it: several got a part of the servers each; with `again_in`
};
struct AlreadyDone {
  Millis ago;
};  // LockSpec::once: somebody has succeeded; we hold nothing and wait no longer
using Attempt = std::variant<Granted, Busy, AlreadyDone>;

using ServerTime = std::chrono::microseconds;  // since 1970, by the server's clock

struct Kept {                                   // ours, renewed
  std::optional<ForceRequest> forced;           // somebody wants it
  std::optional<ServerTime> at = std::nullopt;  // when; missing: there are several servers
};
struct NotOurs {
  std::string what;  // for people: "expired or deleted", "now held by …", "the key now holds a string"
  std::optional<ForceRequest> forced;           // by whom it was broken, when it was
  std::optional<ServerTime> at = std::nullopt;  // when that was found; missing where it does not matter
  bool revoked = false;  // by an operator: it is still the owner's until its ttl is over, but is not renewed
};
using Renewal = std::variant<Kept, NotOurs>;
using ReentryResult = std::variant<Granted, AlreadyDone, NotOurs>;

struct Released {
  bool passed_on = false;
};  // to somebody who had waited for it
struct StillHeld {
  std::int64_t count;
};                   // nested: an outer hold is left
struct Dequeued {};  // it was not ours yet, and we are in line no more
using Release = std::variant<Released, StillHeld, Dequeued, NotOurs>;

// How a lock is let go.
struct ReleaseOptions {
  Millis keep{0};          // how long it shall stay taken though the job is over, if this was the last hold
  bool succeeded = false;  // to be remembered for LockSpec::once
  bool announced = true;   // false: an attempt is taken back, which is no news for anybody
};

struct Waiter {
  Owner owner;
  std::optional<HolderInfo> info;
};

// What `rlock once` remembers of a lock.
struct OnceSuccess {
  std::int64_t at_ms;     // by the server's clock, since 1970
  Millis remembered_for;  // from then on
  Millis ago;
};

struct LockState {
  LockName name;
  Mode mode;                    // Permits: how many there are
  std::optional<Millis> ttl;    // missing: no expiry
  std::uint64_t fence;          // of the holder, where there is one alone; else the last number given out; 0: none
  std::vector<Holder> holders;  // empty: free; 64 at most, a foreign one by what it is called on the server
  std::vector<Waiter> waiting;  // in their order, the dead left out; a thousand at most
  std::uint64_t count = holders.size();  // of the holders, also those that are not among them
  std::vector<Holder> partial = {};      // of several servers: those who have too few of them to hold it
  bool agreed = false;                   // several servers have agreed on the number
  std::optional<OnceSuccess> once = std::nullopt;
  bool proven =
      true;  // rlock's own record, or Redisson's layout, proves that the key is a lock; else it may be any data
  [[nodiscard]] bool held() const { return !holders.empty(); }
  // Whether somebody who wants it for himself, or one of its permits, could have that.
  [[nodiscard]] bool has_room() const
  {
    const auto* permits = std::get_if<Permits>(&mode);
    return !held() || (permits != nullptr && count < permits->limit);
  }
};

// The steps of force-unlock. `revoke` is sent again and again: it makes a mark anew that the server has lost.
enum class ForceStep {
  ask,     // tell the owner that the lock is wanted from it
  look,    // change nothing
  revoke,  // refuse the owner's renewals from now on: its hold ends with its ttl
  take,    // take the lock away at once
};
struct ForceCall {
  LockName name;
  Mode mode;
  Owner owner;        // from whom
  std::string by;     // who wants it, for people
  Millis stands_for;  // how long the server remembers the request at least
};
struct ForceHeld {  // the owner holds the lock
  Holder holder;
  std::int64_t listening = 0;                  // how many have heard the request
  std::optional<Millis> lasts = std::nullopt;  // until the hold ends by itself; missing: it has no ttl
  std::optional<Millis> silent_for =
      std::nullopt;       // since the owner last said that it stops its job; missing: it never did
  bool is_rlock = false;  // its renewals can be refused
};
struct ForceBroken {
  Holder holder;
  bool job_was_over = false;  // --min-hold alone kept the lock
};
struct ForceFree {};  // nobody holds it
struct ForceChanged {
  Holder holder;
};  // somebody else than the one named
using ForceAnswer = std::variant<ForceHeld, ForceBroken, ForceFree, ForceChanged>;

// What was said to an owner about one lock, taken together. No more than hints.
struct Hint {
  std::optional<Millis> look_in;  // it is worth asking the store, then
  bool next = false;              // the owner is first in line now
  std::optional<Millis> claim_in =
      std::nullopt;  // somebody has that long to confirm what was handed to it; `next` says that it has
};
using Hints = std::vector<Hint>;  // one a lock, in the order in which they were given

// Hears what is said to one owner about the locks it listens for: that one was handed to it, that somebody wants
// it, that it is worth looking. Not thread-safe.
class Listener {
 public:
  virtual ~Listener() = default;
  [[nodiscard]] virtual int fd() const = 0;  // readable: heard() may have something
  // Takes what has arrived, without waiting. After an Error: drop it.
  virtual Result<Hints> heard(const Clock& clock) = 0;
  // From when this returns, also that lock number `which` has become free or was deleted, which only foreign
  // clients and the end of a queue say aloud. Again and again does no harm.
  virtual Result<Done> hear_releases(std::size_t which, const CallLimits& limit) = 0;
  // For a holder: from when this returns, also that lock number `which`, which it holds, was granted to another owner that
  // found it without a holder. Calling it again does no harm.
  virtual Result<Done> hear_takings(std::size_t which, const CallLimits& limit) = 0;
};

// Not thread-safe; may be handed from one thread to another between calls. Besides what wire reports, ErrorCode::config
// means that the key holds something that is no such lock, and says what.
class LockStore {
 public:
  virtual ~LockStore() = default;

  virtual Result<Attempt> acquire(const LockSpec& spec, const Owner& owner, const AcquireOptions& manner,
                                  const CallLimits& limit) = 0;
  // Whether acquire releases each attempt that is not granted by itself: then the next one needs a fresh owner.
  [[nodiscard]] virtual bool takes_back() const { return false; }
  // To be called right after a grant: whether as many replicas as LockSpec::sync asks for have it. The caller releases a lock
  // for which the answer is an Error.
  virtual Result<Done> await_replicas(const LockSpec&, const CallLimits&) { return Done{}; }
  // For a nested hold: counts once more, if its owner holds the lock at this moment. Never takes it anew, for the
  // outer hold would then not notice that it was lost.
  virtual Result<ReentryResult> reenter(const LockSpec& spec, const Hold& hold, const CallLimits& limit) = 0;
  // Whether the owner is in line. No script: what a waiter asks once it listens.
  virtual Result<bool> is_queued(const LockSpec& spec, const Owner& owner, const CallLimits& limit) = 0;
  virtual Result<Renewal> renew(const LockSpec& spec, const Owner& owner, const CallLimits& limit) = 0;
  // The same for one hold: NotOurs also where its owner has the lock by other holds alone.
  virtual Result<Renewal> renew_hold(const LockSpec& spec, const Hold& hold, const CallLimits& limit)
  {
    return renew(spec, hold.owner, limit);
  }
  // Later holders get more than `fence`, if the lock is still ours; false: it is not.
  virtual Result<bool> raise_fence(const LockSpec& spec, const Owner& owner, std::uint64_t fence,
                                   const CallLimits& limit) = 0;
  // Also leaves the queue.
  virtual Result<Release> release(const LockSpec& spec, const Hold& hold, const ReleaseOptions& release_options,
                                  const CallLimits& limit) = 0;
  // The outermost holds, with nothing to remember; the answers in the same order. One round trip where the store can
  // do that.
  virtual std::vector<Result<Release>> release_each(std::span<const LockSpec* const> specs, const Owner& owner,
                                                    const CallLimits& limit)
  {
    std::vector<Result<Release>> answers;
    for (const LockSpec* spec : specs) {
      answers.push_back(release(*spec, owner, {}, limit));
    }
    return answers;
  }
  virtual Result<LockState> inspect(const LockName& name, const CallLimits& limit) = 0;

  // Names of locks whose key matches the glob, sorted. Keys that are no locks are left out.
  virtual Result<std::vector<LockState>> list(std::string_view pattern, const PerAnswer& limits) = 0;

  // From when this returns, whatever is said to the owner about any of these locks is heard. One connection.
  virtual Result<std::unique_ptr<Listener>> listen(std::span<const LockSpec> specs, const Owner& owner,
                                                   const CallLimits& limit) = 0;

  // One step of force-unlock. A lock that --min-hold alone keeps is broken by each step.
  virtual Result<ForceAnswer> force(ForceStep step, const ForceCall& call, const CallLimits& limit) = 0;

  // Forgets the success that `rlock once` remembers; false: there was none.
  virtual Result<bool> forget_success(const LockName& name, const CallLimits& limit) = 0;

  // Drops the connection, so that the next try starts on a fresh one.
  virtual void forget() = 0;

  // Until the next request no thread of the store's runs, if it has any: before a fork whose child goes on with it.
  virtual void rest() {}
};

// "alice@web1 (pid 71), running ./job.sh", or the bare owner id of a foreign client. Safe to print.
std::string describe(const Holder& holder);

// The parts of that: "alice@web1 (pid 71)", or the token of a foreign client; "running ./job.sh [label]", or nothing.
std::string describe_who(const Owner& owner, const std::optional<HolderInfo>& info);
std::string describe_job(const HolderInfo& info);

}  // namespace rlock
