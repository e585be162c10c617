// SPDX-License-Identifier: Apache-2.0
// What the job finds in its environment about the locks it runs under.
#pragma once

#include "base/clock.h"
#include "lock/names.h"
#include "wire/url.h"

#include <string>
#include <string_view>
#include <vector>

namespace rlock {

struct HeldLock {
  const LockName& name;
  const Owner& owner;
  Millis lease;
  const Endpoint& server;
};

// Known only when the lock is ours, and so the last to be set.
constexpr std::string_view fence_variable = "RLOCK_FENCE";

// `inherited` with RLOCK_KEY, RLOCK_TOKEN, RLOCK_LEASE_MS and RLOCK_SERVER set, without RLOCK_FENCE, and the lock
// appended to RLOCK_HELD, where the locks of all ancestors stand, one "TOKEN KEY" a line.
std::vector<std::string> job_environment(std::vector<std::string> inherited, const HeldLock& lock);

// The value of `name` in a list of NAME=value; empty when it is not there.
std::string_view environment_value(const std::vector<std::string>& environment, std::string_view name);

}  // namespace rlock
