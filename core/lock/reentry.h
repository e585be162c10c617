// SPDX-License-Identifier: Apache-2.0
// Enters a lock: again, where an ancestor process holds it, by a further hold of the ancestor's owner; else by wait_and_acquire.
#pragma once

#include "lock/waiting.h"

#include <cstddef>
#include <span>
#include <variant>

namespace rlock {

// NotHeld: the ancestor's owner does not hold the lock; nothing was changed.
using ReentryOutcome = std::variant<Taken, AlreadyDone, NotHeld, Interrupted>;

// Adds a hold for the ancestor's owner. Does not queue and does not wait. After every outcome but Taken, nothing of this hold is left on the server, as after wait_and_acquire.
Result<ReentryOutcome> reenter_lock(LockStore& store, const LockSpec& spec, const Hold& hold, Millis server_timeout,
                                    const Clock& clock, StopToken stop);

struct Entered {
  Hold hold;
  Taken taken;
};
using EnterOutcome = std::variant<Entered, AlreadyDone, TimedOut, Interrupted>;

struct Ancestor {
  std::size_t which;  // the index in the specs
  Owner owner;
};

// Enters a lock again under the first ancestor that holds one; else acquires any of the locks as the fresh owner, by
// wait_and_acquire.
Result<EnterOutcome> enter(LockStore& store, std::span<const LockSpec> specs, const Owner& fresh,
                           std::span<const Ancestor> ancestors, const WaitPolicy& policy, const Clock& clock, Rng& rng,
                           StopToken stop, WaitObserver& observer);

}  // namespace rlock
