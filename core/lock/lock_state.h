// SPDX-License-Identifier: Apache-2.0
// A lock as an operator sees it: its holders, its waiters, its lease. Plain values; times are by the server's clock.
#pragma once

#include "lock/holder.h"
#include "lock/mode.h"
#include "lock/names.h"
#include "lock/past_run.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace rlock {

// A holder of a lock.
struct Holder {
  Owner owner;
  std::int64_t count;              // holds of this owner; > 1 when nested
  std::optional<HolderInfo> info;  // nullopt: a foreign client, which stores none
  std::optional<Millis> age =
      std::nullopt;  // time since the grant, by the server's clock; nullopt: unknown, or not asked for
};

struct Waiter {
  Owner owner;
  std::optional<HolderInfo> info;
};

// The success that `rlock once` remembers of a lock.
struct OnceSuccess {
  std::int64_t at_ms;     // since 1970
  Millis remembered_for;  // from at_ms
  Millis ago;             // time since at_ms
};

struct LockState {
  LockName name;
  Mode mode;                             // Permits: with their number
  std::optional<Millis> ttl;             // nullopt: the lock does not expire
  std::uint64_t fence;                   // of the only holder; else the last number that the server gave out; 0: none
  std::vector<Holder> holders;           // empty: free; 64 at most
  std::vector<Waiter> waiting;           // in the order of the queue, without dead waiters; a thousand at most
  std::uint64_t count = holders.size();  // of all holders, including those that `holders` leaves out
  std::vector<Holder> partial = {};      // several servers: holders on too few of them to hold the lock
  bool agreed = false;                   // several servers have agreed on `fence`
  std::optional<OnceSuccess> once = std::nullopt;
  std::vector<PastRun> runs = {};  // the runs that are over, the last one first; empty unless asked for (RunHistory)
  bool proven = true;              // a record of rlock, or the layout of Redisson, proves that the key is a lock

  [[nodiscard]] bool held() const { return !holders.empty(); }
  // Whether an exclusive request, or a request for one permit, could be granted.
  [[nodiscard]] bool has_room() const
  {
    const auto* permits = std::get_if<Permits>(&mode);
    return !held() || (permits != nullptr && count < permits->limit);
  }
};

// The last of `runs` that was not skipped, else the last of them; nullptr: there is none.
const PastRun* last_run(const LockState& state);

// "alice@web1 (pid 71), running ./job.sh", or the owner id of a foreign client. Printable.
std::string describe(const Holder& holder);

// The two parts of describe(): "alice@web1 (pid 71)" or the owner id; "running ./job.sh [label]" or nothing. Printable.
std::string describe_who(const Owner& owner, const std::optional<HolderInfo>& info);
std::string describe_job(const HolderInfo& info);

}  // namespace rlock
