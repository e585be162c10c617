// SPDX-License-Identifier: Apache-2.0
// Detects a process that would wait for itself. Such a process runs below the job that holds the lock, but RLOCK_HELD was removed
// from its environment (su -, sudo -i), so the process cannot enter the lock again.
#pragma once

#include "lock/mode.h"
#include "lock/store.h"

#include <string_view>

namespace rlock {

// Whether an ancestor of this process holds the lock for as long as its job runs, so that the wait would not end. Compares the
// holder's record (host, pid, command) with the ancestors in /proc. False for permits, because another holder may release one.
bool waits_for_itself(const Mode& mode, const Busy& busy);

// The end of the message that the lock is busy.
constexpr std::string_view waits_for_itself_text =
    "; this process runs under that job and would wait for itself: keep RLOCK_HELD in the environment to enter the "
    "lock again";

}  // namespace rlock
