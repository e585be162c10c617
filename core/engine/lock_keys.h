// SPDX-License-Identifier: Apache-2.0
// The keys and channels that belong to a lock on a Redis server.
#pragma once

#include "lock/calls.h"
#include "lock/lock_kind.h"
#include "lock/names.h"

#include <array>
#include <string>
#include <string_view>

namespace rlock {

// Redisson uses the keys named redisson_* and `second` too. Only rlock uses the others, and a holder keeps its lock without them.
// All keys are in the cluster slot of the lock. Redisson's keys are the same for "stock" and "{stock}"; rlock's keys differ:
// "rlock:holder:{stock}" and "rlock:holder:tagged:{stock}". Each kind of lock has its own queue, because a waiter that gets a
// lock of another kind would take that lock for its own kind.
struct LockKeys : calls::Keys {
  explicit LockKeys(const LockName& name, const LockKind& kind = Plain{});

  std::string runs;           // list: runs that the event log has forgotten (lock/kept_runs.h)
  std::string reads;          // the prefix of a string for each hold of a reader: "READER:rwlock_timeout:N"
  std::string own_number;     // string: the number of free permits that rlock last wrote
  std::string channel;        // announces that the lock becomes free; empty: no client announces it
  std::string taken_channel;  // announces each grant that found no holder and no release
  std::string owner_channel;  // the prefix of the channel of each owner, whose name follows
};

// globs_beside: the globs of the keys "rlock:PART:…" beside all locks whose name matches `glob`. lock_beside: the lock's name in
// such a key; empty: the key is no such key.
std::array<std::string, 2> globs_beside(std::string_view part, std::string_view glob);
std::string lock_beside(std::string_view part, std::string_view key);

}  // namespace rlock
