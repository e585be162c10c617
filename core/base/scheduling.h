// SPDX-License-Identifier: Apache-2.0
// How a process that has done its work leaves its core to the processes that wait for it.
#pragma once

namespace rlock {

// From now on this process does not preempt another process when it wakes up (SCHED_BATCH, sched(7)), because the next
// holder often runs on the same core. A process whose scheduling policy is not the default keeps that policy.
void use_batch_scheduling();

// Lets the other processes that wait for this core run first, once (sched_yield(2)).
void yield_core();

}  // namespace rlock
