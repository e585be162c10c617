// SPDX-License-Identifier: Apache-2.0
// The keys and channels that belong to a lock on a Redis server.
#pragma once

#include "lock/mode.h"
#include "lock/names.h"

#include <array>
#include <string>
#include <string_view>

namespace rlock {

// The keys and channels that belong to a lock. Those named redisson_* are shared with Redisson's objects, as is `second`;
// the rest is rlock's own and may be lost without harm. All hash to the lock's own cluster slot. Redisson's keys are the
// same for "stock" and "{stock}", rlock's own differ: "rlock:holder:{stock}" and "rlock:holder:tagged:{stock}". Each kind
// has a queue of its own, because a waiter that is handed a lock of another kind would take it for what it is not.
struct LockKeys {
  explicit LockKeys(const LockName& name, const Mode& mode = Plain{});

  std::string lock;           // in the layout of its kind
  std::string fence;          // string: the last fencing number given out
  std::string holder;         // hash {owner: HolderInfo, "hold:ID": owner}
  std::string force;          // hash {owner: by}: who asked whom to let go
  std::string events;         // list: what happened lately
  std::string queue;          // sorted set {owner: arrival}: who waits
  std::string waiters;        // hash {owner: HolderInfo}
  std::string reserved;       // string: a free lock is left to foreign clients for a moment
  std::string fair_queue;     // list: Redisson's fair lock keeps its waiters here
  std::string second;         // of some kinds: the expiry of each holder
  std::string reads;          // prefix of a string for each hold of a reader: "READER:rwlock_timeout:N"
  std::string done;           // string: when a job last succeeded, if that is remembered; and a channel that hears it
  std::string channel;        // "0", say, when the lock becomes free; empty: nobody says it
  std::string taken_channel;  // hears of each grant that found no holder, without a release before it
  std::string owner_channel;  // prefix; followed by an owner: what that one listens on
};

// The globs of the keys "rlock:PART:…" beside all locks whose name matches `glob`; and the lock's name in such a key, empty
// where it is no such key.
std::array<std::string, 2> globs_beside(std::string_view part, std::string_view glob);
std::string lock_beside(std::string_view part, std::string_view key);

}  // namespace rlock
