// SPDX-License-Identifier: Apache-2.0
// The part of the story during which the lock is ours: start the job, watch both, stop, release.
#pragma once

#include "lock/waiting.h"
#include "runner/run.h"

#include <string>

namespace rlock {

struct Tenure {
  LockStore& store;
  const LockSpec& spec;
  const Owner& owner;
  const std::string& path;  // of the job's executable
  Taken taken;
};

// Nothing is released before the job is dead and reaped, and the watchdog is stopped before that: a renewal
// can never follow the release.
RunEnd supervise(const RunRequest& request, World world, Tenure tenure);

}  // namespace rlock
