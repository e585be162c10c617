// SPDX-License-Identifier: Apache-2.0
// Detects a process that would wait for itself: it runs below the job that holds the lock, but RLOCK_HELD was removed
// from its environment (su -, sudo -i), so it cannot enter the lock again.
#pragma once

#include "lock/mode.h"
#include "lock/store.h"

#include <string_view>

namespace rlock {

// Whether an ancestor of this process holds the lock for as long as its job runs, so that the wait would not end.
// Decides by the holder's record: its host, its pid among the ancestors in /proc, and its command. False for permits,
// because another holder may release one.
bool waits_for_itself(const Mode& mode, const Busy& busy);

// The end of the message that the lock is busy.
constexpr std::string_view waits_for_itself_text =
    "; this process runs under that job and would wait for itself: keep RLOCK_HELD in the environment to enter the "
    "lock again";

}  // namespace rlock
