// SPDX-License-Identifier: Apache-2.0
// A process below the job of a lock whose environment was scrubbed (su -, sudo -i) cannot enter that lock again: RLOCK_HELD
// is gone. It would wait for itself.
#pragma once

#include "lock/mode.h"
#include "lock/store.h"

#include <string_view>

namespace rlock {

// Whether the lock is held by an ancestor of this process for as long as its job runs, so that the wait would not end.
// Judged by the holder's record: its host, its pid among the parents in /proc, and its command. Never of permits, of
// which others may come free.
bool waits_for_itself(const Mode& mode, const Busy& busy);

// For the end of a line that says that the lock is busy.
constexpr std::string_view waits_for_itself_text =
    "; this process runs under that job and would wait for itself: keep RLOCK_HELD in the environment to enter the "
    "lock again";

}  // namespace rlock
