// SPDX-License-Identifier: Apache-2.0
// Taking a lock, waiting in line for it if need be.
//
// A waiter's life: ask and get in line; listen; make sure that we still are in line, for until we listened the
// lock could be passed to us or past us; sleep; on a word or when it is time, ask again, which confirms a
// lock that was handed to us. A word is a hint: each sleep is bounded, so that a lost one costs 10 s at most.
//
// Where any of several locks will do we first look at each in turn, from a random one on, without getting in line.
// When all are busy, or others wait already, we listen and stand in every line. Whichever is granted first is taken,
// and all other lines are left: what is handed to us there meanwhile passes on.
#pragma once

#include "base/rng.h"
#include "lock/store.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <variant>

namespace rlock {

struct WaitPolicy {
  std::optional<Instant> until;  // give up at; missing: never
  bool patient;                  // false: one try
  Millis server_timeout;         // bounds each answer
};

struct TimedOut {
  Busy last;
};                      // busy for as long as we were told to wait: the lock, or the nearest of them
struct Interrupted {};  // our stop became readable
struct Taken {
  std::size_t which;  // of the locks that were wanted
  Owner owner;        // of the lock; another one than was given where an attempt had to be taken back
  Granted grant;
  Instant sent_at;                     // read before the granted request was sent: the lease counts from here
  std::unique_ptr<Listener> listener;  // of who had to wait for one lock; it goes on hearing what is said to the owner
};
using WaitOutcome = std::variant<Taken, AlreadyDone, TimedOut, Interrupted>;

// Who tells the user. Called from the waiting thread; must not block.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  virtual void refused(const Busy& busy) = 0;     // each answer that is not a grant, from where we are nearest
  [[nodiscard]] virtual Instant due() const = 0;  // when it wants to be called
  virtual void tick() = 0;
  // Whether the wait for the one lock that is wanted cannot end: it is over then, as if its time were.
  virtual bool is_hopeless(const Busy&) { return false; }
  virtual void next_in_line() = 0;  // what can be prepared may be prepared now
};

// Asks until one of the locks (one at least) is granted, time is over or `stop` is readable. Without patience each is
// asked for once. Whatever ends it, nothing of ours is left on the server but the lock that was Taken: we leave
// the lines, and what an unanswered request may have taken is released (where the server does not answer that either,
// the ttl frees it). One owner stands in all the lines, and never holds two of the locks when this returns. `owner` is the
// first to be used; each attempt after a release has a fresh one (Taken::owner).
// A server that goes away while we wait is asked again until the time is over (then the Error is returned);
// one that was never there is an Error at once. It was there when it has spoken to us, in the handshake for one.
Result<WaitOutcome> wait_and_acquire(LockStore& store, std::span<const LockSpec> specs, const Owner& owner,
                                     const WaitPolicy& policy, const Clock& clock, Rng& rng, StopToken stop,
                                     WaitObserver& onlooker);
inline Result<WaitOutcome> wait_and_acquire(LockStore& store, const LockSpec& spec, const Owner& owner,
                                            const WaitPolicy& policy, const Clock& clock, Rng& rng, StopToken stop,
                                            WaitObserver& onlooker)
{
  return wait_and_acquire(store, std::span(&spec, 1), owner, policy, clock, rng, stop, onlooker);
}

}  // namespace rlock
