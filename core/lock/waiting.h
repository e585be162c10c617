// SPDX-License-Identifier: Apache-2.0
// Taking a lock, waiting for it if need be.
#pragma once

#include "base/rng.h"
#include "lock/store.h"

#include <functional>
#include <optional>
#include <variant>

namespace rlock {

struct WaitPolicy {
  std::optional<Instant> until;  // give up at; missing: never. In the past: one try
  Millis server_timeout;         // bounds each answer
};

struct TimedOut { Busy last; };  // busy for as long as we were told to wait
struct Interrupted {};           // our stop became readable
struct Taken {
  Granted grant;
  Instant sent_at;  // read before the granted request was sent: the lease counts from here
};
using WaitOutcome = std::variant<Taken, TimedOut, Interrupted>;

// Called with each refusal, for telling the user; must not block.
using OnBusy = std::function<void(const Busy&)>;

// Tries until it is granted, time is over or `stop` is readable. Whatever ends it, nothing of ours is left
// on the server unless the outcome is Taken: what an unanswered request may have taken is released (and where
// the server does not answer that either, the ttl frees it).
// A server that goes away while we wait is asked again until the time is over (then the Error is returned);
// one that was never there is an Error at once.
Result<WaitOutcome> wait_and_acquire(LockStore& store, const LockSpec& spec, const Owner& owner,
                                     const WaitPolicy& policy, const Clock& clock, Rng& rng, Stop stop,
                                     const OnBusy& on_busy);

}  // namespace rlock
