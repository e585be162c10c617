// SPDX-License-Identifier: Apache-2.0
// What the job finds in its environment about the locks it runs under, and what we find there ourselves when we run under
// one.
#pragma once

#include "base/clock.h"
#include "lock/names.h"
#include "lock/reentry.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

struct HeldLock {
  LockName name;
  Hold hold;  // a job is told the owner; who is to let go of a nested hold by its token is told that one
  std::optional<std::size_t> shard = std::nullopt;  // its number, if any of several would have done
};

struct JobLocks {
  std::vector<HeldLock> held;  // one at least; the first is the one that RLOCK_KEY and RLOCK_TOKEN name
  Millis lease;
  const std::string server;  // as ServerSpec::shown
};

// Known only when the lock is ours, and so the last to be set.
constexpr std::string_view fence_variable = "RLOCK_FENCE";

// `inherited` with RLOCK_KEY, RLOCK_TOKEN, RLOCK_LEASE_MS and RLOCK_SERVER set, RLOCK_SHARD if there is one, without
// RLOCK_FENCE, and the locks appended to RLOCK_HELD, where the locks of all ancestors stand, one "TOKEN KEY" a line.
std::vector<std::string> job_environment(std::vector<std::string> inherited, const JobLocks& locks);

// Who holds, or held, this lock among our ancestors, by RLOCK_HELD: the innermost first, each once. Which server that was
// is not told, and need not be: on any other the owner is unknown.
std::vector<Owner> ancestors_with(const std::vector<std::string>& environment, const LockName& name);

// The same for locks any of which will do.
std::vector<Ancestor> ancestors_with(const std::vector<std::string>& environment, std::span<const LockSpec> any_of);

// The value of `name` in a list of NAME=value; nullopt when it is not there.
std::optional<std::string_view> find_variable(const std::vector<std::string>& environment, std::string_view name);

// The same; empty when it is not there.
std::string_view environment_value(const std::vector<std::string>& environment, std::string_view name);

}  // namespace rlock
