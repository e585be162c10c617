// SPDX-License-Identifier: Apache-2.0
// Acquires a lock, and waits in its queue if the lock is busy.
//
// A waiter asks, which also queues it; subscribes; checks that it is still in the queue, because the lock may have been
// handed over before the subscription; and rests. A message, or the time of its next request, makes the waiter ask again,
// which confirms a hand-over. Messages may be lost, so each rest is bounded (rest_after in lock_candidate.h). Where the
// caller allows it, a young message of a hand-over stands for the answer (handover.h).
//
// If any one of several locks will do, the waiter first asks for each in turn without queueing, beginning at a random one.
// If all are busy, or another client waits already, it subscribes and joins every queue. The first grant is taken, and all
// other queues are left: what was handed over there meanwhile passes on to the next waiter.
#pragma once

#include "base/rng.h"
#include "lock/store.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <variant>

namespace rlock {

// Stops the holders that are in the way of a waiter. Called from the waiting thread, between the waiter's requests.
class HolderStopper {
 public:
  virtual ~HolderStopper() = default;
  virtual void in_the_way(const Busy& busy) = 0;  // each refusal of the only lock
  [[nodiscard]] virtual Instant due() const = 0;  // when step() is to be called
  // Sends one request, and ends soon after `stop` is requested. True: the lock may have another holder now, or none.
  virtual bool step(StopToken stop) = 0;
};

struct WaitPolicy {
  std::optional<Instant> until;  // end of the wait; missing: wait without end
  bool waits;                    // false: ask once for each lock
  Millis server_timeout;         // bounds each answer
  // Until then a server that cannot be reached, or cannot serve, is tried again; `until` does not end that. Missing: not.
  std::optional<Instant> server_until = std::nullopt;
  HolderStopper* stopper = nullptr;  // for the only lock; missing: holders are waited for
  bool takes_message = false;        // a Handover of the only lock that is waited for need not be confirmed first
};

struct TimedOut {
  Busy last;  // the last answer, of the lock with the fewest waiters ahead; or Busy::replaced
};
struct Interrupted {};  // the stop token was readable
struct Taken {
  std::size_t which;  // index in the specs
  Owner owner;        // of the lock; a fresh one where an attempt had to be taken back
  Granted grant;
  Instant sent_at;                     // taken before the granted request was sent: the lease counts from here
  std::optional<Millis> claim;         // the lease that a Handover gave; missing: it was confirmed, for LockSpec::ttl
  std::unique_ptr<Listener> listener;  // still hears the messages to the owner; nullptr if the waiter never subscribed
};
using WaitOutcome = std::variant<Taken, AlreadyDone, TimedOut, Interrupted>;

// Called from the waiting thread; must not block.
class ServerObserver {
 public:
  virtual ~ServerObserver() = default;
  virtual void server_failed(const Error&) {}  // each time, before a pause after which the server is asked again
  virtual void server_answered() {}            // after one or more failures
};

// Called from the waiting thread; must not block.
class WaitObserver : public ServerObserver {
 public:
  virtual void refused(const Busy& busy) = 0;     // each refusal by the lock with the fewest waiters ahead
  [[nodiscard]] virtual Instant due() const = 0;  // when tick() is to be called
  virtual void tick() = 0;
  // Whether the wait for the only lock cannot end: then it ends as if its time were over.
  virtual bool is_hopeless(const Busy&) { return false; }
  virtual void next_in_line() = 0;  // the caller may prepare its job now
};

// Asks until one of the locks (at least one) is granted, the time is over, or `stop` is readable.
//
// Whatever the outcome, nothing of the waiter is left on the server but the lock that was Taken: queues are left, and what
// an unanswered request may have taken is released (if the server does not answer that either, the ttl ends it). One owner
// stands in all queues; it never holds two of the locks when this returns. `owner` is the first to be used; each attempt
// after a release has a fresh one (Taken::owner).
//
// Errors: a server that never answered is an Error once WaitPolicy::server_until has passed. It has answered also if only its
// handshake succeeded. A server that goes away later is asked again until the time is over; then the Error is returned.
Result<WaitOutcome> wait_and_acquire(LockStore& store, std::span<const LockSpec> specs, const Owner& owner,
                                     const WaitPolicy& policy, const Clock& clock, Rng& rng, StopToken stop,
                                     WaitObserver& observer);
inline Result<WaitOutcome> wait_and_acquire(LockStore& store, const LockSpec& spec, const Owner& owner,
                                            const WaitPolicy& policy, const Clock& clock, Rng& rng, StopToken stop,
                                            WaitObserver& observer)
{
  return wait_and_acquire(store, std::span(&spec, 1), owner, policy, clock, rng, stop, observer);
}

}  // namespace rlock
