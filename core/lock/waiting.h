// SPDX-License-Identifier: Apache-2.0
// Taking a lock, waiting in line for it if need be.
//
// A waiter's life: ask and get in line; listen; make sure that we still are in line, for until we listened the
// lock could be passed to us or past us; sleep; on a word or when it is time, ask again, which confirms a
// lock that was handed to us. A word is a hint: each sleep is bounded, so that a lost one costs 10 s at most.
#pragma once

#include "base/rng.h"
#include "lock/store.h"

#include <memory>
#include <optional>
#include <variant>

namespace rlock {

struct WaitPolicy {
  std::optional<Instant> until;  // give up at; missing: never
  bool patient;                  // false: one try
  Millis server_timeout;         // bounds each answer
};

struct TimedOut { Busy last; };  // busy for as long as we were told to wait
struct Interrupted {};           // our stop became readable
struct Taken {
  Granted grant;
  Instant sent_at;                     // read before the granted request was sent: the lease counts from here
  std::unique_ptr<Listener> listener;  // of who had to wait; it goes on hearing what is said to the owner
};
using WaitOutcome = std::variant<Taken, AlreadyDone, TimedOut, Interrupted>;

// Who tells the user. Called from the waiting thread; must not block.
class Onlooker {
 public:
  virtual ~Onlooker() = default;
  virtual void refused(const Busy& busy) = 0;        // each answer that is not a grant
  [[nodiscard]] virtual Instant due() const = 0;     // when it wants to be called
  virtual void tick() = 0;
  virtual void next_in_line() = 0;                   // what can be prepared may be prepared now
};

// Asks until it is granted, time is over or `stop` is readable. Whatever ends it, nothing of ours is left
// on the server unless the outcome is Taken: we leave the line, and what an unanswered request may have taken
// is released (where the server does not answer that either, the ttl frees it).
// A server that goes away while we wait is asked again until the time is over (then the Error is returned);
// one that was never there is an Error at once.
Result<WaitOutcome> wait_and_acquire(LockStore& store, const LockSpec& spec, const Owner& owner,
                                     const WaitPolicy& policy, const Clock& clock, Rng& rng, Stop stop,
                                     Onlooker& onlooker);

// When to look again at a lock that is busy: the first few in line when its ttl is over, one after the other (for
// nothing is said when a lock expires), and everybody within 10 s.
Millis rest_after(const Busy& busy, Rng& rng);

}  // namespace rlock
