// SPDX-License-Identifier: Apache-2.0
#include "base/scheduling.h"

#include <sched.h>

namespace rlock {

void use_batch_scheduling()
{
  if (::sched_getscheduler(0) == SCHED_OTHER) {
    const sched_param no_priority{};
    ::sched_setscheduler(0, SCHED_BATCH, &no_priority);
  }
}

void yield_core() { ::sched_yield(); }

}  // namespace rlock
