// SPDX-License-Identifier: Apache-2.0
// Acquires a lock, and waits in its queue if the lock is busy.
//
// A waiter sends its request, which also puts it in the queue. The waiter subscribes, checks that it is still in the queue
// (the store may have handed the lock over before the subscription), and rests. A message, or the time of its next request, makes
// the waiter ask again, which confirms a hand-over. Messages may be lost, so each rest is bounded (rest_after in
// lock_candidates.h). Where the caller allows it, a young message of a hand-over replaces the answer (handed_over_at).
//
// If the caller needs any one of several locks, the waiter first asks for each lock in turn without queueing, beginning at a
// random lock. If all are busy, or if another client waits already, the waiter subscribes and joins every queue. The waiter takes
// the first grant and leaves all other queues; a lock that was handed over there meanwhile passes on to the next waiter.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include "base/clock.h"
#include "lock/lease_budget.h"
#include "lock/store.h"

namespace rlock {

// Stops the holders that are in the way of a waiter. Called from the waiting thread, between the waiter's requests.
class HolderStopper {
 public:
  virtual ~HolderStopper() = default;
  virtual void in_the_way(const Busy& busy) = 0;  // called at each refusal of the only lock
  [[nodiscard]] virtual Instant due() const = 0;  // when the waiter must call step()
  // Sends one request, and ends soon after `stop` is requested. True: the lock may have another holder now, or none.
  virtual bool step(StopToken stop) = 0;
};

struct WaitPolicy {
  std::optional<Instant> until;  // the end of the wait; nullopt: none
  bool waits;                    // false: ask once for each lock
  Millis server_timeout;         // bounds each answer
  // Retry a server that cannot be reached, or cannot serve, until this time, whatever `until` says; nullopt: never.
  std::optional<Instant> server_until = std::nullopt;
  HolderStopper* stopper = nullptr;  // stops the holders of the only lock; nullptr: the waiter waits for them
  bool was_in_line = false;    // in an earlier attempt of the same caller, so LockSpec::max_waiting does not count
  bool takes_message = false;  // a Handover of the only lock may start the job before the server confirms it
};

struct TimedOut {
  Busy last;  // the last answer for the lock with the fewest waiters ahead, or the answer with Busy::replaced
};
struct Interrupted {};  // the stop token was readable
struct Taken {
  std::size_t which;  // the index in the specs
  Owner owner;        // the holder: the caller's owner, or a fresh owner if an attempt had to be taken back
  Granted grant;
  bool is_claim;                       // a Handover gave the lease, which is not confirmed yet
  std::unique_ptr<Listener> listener;  // still hears the messages to the owner; nullptr if the waiter never subscribed
};
using WaitOutcome = std::variant<Taken, AlreadyDone, TimedOut, Interrupted>;

// Called from the waiting thread; must not block.
class ServerObserver {
 public:
  virtual ~ServerObserver() = default;
  virtual void server_failed(const Error&) {}  // called at each failure, before the pause before the next request
  virtual void server_answered() {}            // called at the first answer after one or more failures
};

// Called from the waiting thread; must not block.
class WaitObserver : public ServerObserver {
 public:
  virtual void refused(const Busy& busy) = 0;     // called at each refusal of the lock with the fewest waiters ahead
  [[nodiscard]] virtual Instant due() const = 0;  // when the waiter must call tick()
  virtual void tick() = 0;
  [[nodiscard]] virtual int fd() const { return -1; }  // readable: the waiter must call tick()
  // Whether the wait for the only lock would never end. True: the waiter ends as if its time were over.
  virtual bool is_hopeless(const Busy&) { return false; }
  virtual void next_in_line() = 0;  // the caller may prepare its job now
};

// Asks until one of the locks is granted, the time is over, or `stop` is readable. `specs`: at least one lock.
//
// After every outcome the server has nothing of the waiter but the lock that was Taken: the waiter leaves its queues and releases
// what an unanswered request may have taken (the ttl ends a lock whose release is not answered either). One owner stands in all
// queues, and never holds two of the locks at the return. The first attempt uses `owner`; each attempt after a release uses a
// fresh owner (Taken::owner).
//
// Errors: a server that never answered is an Error when WaitPolicy::server_until has passed; a handshake counts as an answer. A
// server that goes away later is asked again until the time is over; then its Error is returned, or TimedOut if it has been
// silent for less than a second.
Result<WaitOutcome> wait_and_acquire(LockStore& store, std::span<const LockSpec> specs, const Owner& owner,
                                     const WaitPolicy& policy, const Clock& clock, Rng& rng, StopToken stop,
                                     WaitObserver& observer);
inline Result<WaitOutcome> wait_and_acquire(LockStore& store, const LockSpec& spec, const Owner& owner,
                                            const WaitPolicy& policy, const Clock& clock, Rng& rng, StopToken stop,
                                            WaitObserver& observer)
{
  return wait_and_acquire(store, std::span(&spec, 1), owner, policy, clock, rng, stop, observer);
}

// Decides when the first waiter must poll because a foreign client barges: a client that has just unlocked may lock again before
// its message reaches the waiter. A pure state machine: the caller passes the time. Not thread-safe.

// A waiter that loses to foreign clients for `losing_limit` polls every millisecond for `polling_time`, so that one of its
// requests arrives between an unlock and the next lock.
class ForeignUnlockPolling {
 public:
  // Call this after each refusal. `behind_foreigner`: the waiter is first, and the holder is a foreign client.
  // `was_notified`: a message made the waiter ask. True: the waiter must ask again in a millisecond.
  bool must_poll(Instant now, bool behind_foreigner, bool was_notified)
  {
    if (!behind_foreigner) {
      m_losing_since.reset();
      return false;
    }
    if (was_notified && !m_losing_since) {
      m_losing_since = now;
    } else if (m_losing_since && now - *m_losing_since > losing_limit) {
      m_poll_until = now + polling_time;
      m_losing_since.reset();
    }
    return now < m_poll_until;
  }

 private:
  static constexpr Millis losing_limit{300};
  static constexpr Millis polling_time{50};
  std::optional<Instant> m_losing_since;
  Instant m_poll_until{};
};

// Whether a job may begin on the message that hands its lock over, before the server is asked. Pure functions.

// When the lock was handed over, by the clock of this host, or a moment earlier. The server's clock read `server_time` when the
// server answered a request that was sent at `asked_at`; the message has the server's time as well. So the age of the message is
// known, except for that round trip and the drift of the clocks since then.
//
// nullopt: the waiter must ask the server first, because the message is older than the answer, leaves too little of its lease,
// or is from the future (the server's clock was set). A clock that is set ahead by no more than the delay of the message goes
// unnoticed.
inline std::optional<Instant> handed_over_at(const Handover& handover, Instant asked_at,
                                             std::chrono::microseconds server_time, Instant now)
{
  const auto between = handover.at - server_time;
  const Instant at = asked_at + between - drift_allowed(std::chrono::ceil<Millis>(between));
  const bool may_begin =
      between.count() > 0 && at <= now && LeaseBudget({.from = at, .length = handover.lease}).may_begin(now);
  return may_begin ? std::optional(at) : std::nullopt;
}

}  // namespace rlock
