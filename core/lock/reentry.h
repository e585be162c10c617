// SPDX-License-Identifier: Apache-2.0
// Taking once more a lock that an ancestor of ours holds. No queue and no waiting: it is ours already, or it is not.
#pragma once

#include "lock/waiting.h"

#include <cstddef>
#include <span>
#include <variant>

namespace rlock {

// NotHeld: the owner does not hold it, so that nothing was taken; the lock may be had by waiting for it as anybody does.
using Nesting = std::variant<Taken, AlreadyDone, NotHeld, Interrupted>;

// Unless the outcome is Taken nothing of this hold is left on the server, as with wait_and_acquire.
Result<Nesting> take_again(LockStore& store, const LockSpec& spec, const Hold& hold, Millis server_timeout,
                           const Clock& clock, StopToken stop);

struct Entered {
  Hold hold;
  Taken taken;
};
using Entry = std::variant<Entered, AlreadyDone, TimedOut, Interrupted>;

struct Ancestor {
  std::size_t which;  // of the locks any of which will do
  Owner owner;
};

// Takes the lock again under the first of the ancestors that holds it; else any of them as the fresh owner, by
// wait_and_acquire.
Result<Entry> enter(LockStore& store, std::span<const LockSpec> specs, const Owner& fresh,
                    std::span<const Ancestor> ancestors, const WaitPolicy& policy, const Clock& clock, Rng& rng,
                    StopToken stop, WaitObserver& onlooker);
Result<Entry> enter(LockStore& store, const LockSpec& spec, const Owner& fresh, std::span<const Owner> ancestors,
                    const WaitPolicy& policy, const Clock& clock, Rng& rng, StopToken stop, WaitObserver& onlooker);

}  // namespace rlock
