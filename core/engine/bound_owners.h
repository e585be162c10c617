// SPDX-License-Identifier: Apache-2.0
// The owners in a record whose holds, claims and places in the queue end with presences. The scripts know times alone, so what is
// bound to a living presence gets a time that has not come, and what is bound to one that is gone is over, before a script runs.
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "engine/record_codec.h"
#include "lock/names.h"

namespace rlock::record {

std::vector<PresenceId> presences_in(const Bindings& bindings);

// Those of all holders, and of the first `asked_waiters` of each queue. A dead waiter behind them does no harm, but a question for
// each of two hundred waiters costs every request of a holder.
inline constexpr std::size_t asked_waiters = 16;
std::vector<PresenceId> presences_to_ask(const LockRecord& record, const LockName& lock);

// Ends the owners whose presences are all in `gone`, and removes them from the bindings; whatever the others hold ends after
// `time_us`. Then the record is right at that time. The scripts are told which holders were dead (is_known_dead of
// lua/lib/queue.lua). Returns the presences of those among them that held the lock.
std::vector<PresenceId> end_gone(LockRecord& record, const LockName& lock, std::span<const PresenceId> gone,
                                 std::int64_t time_us);

// What this owner holds lasts until then at least, by the scripts' time. False: it does so already.
bool lengthen_hold(LockRecord& record, const LockName& lock, const std::string& owner, std::int64_t ends_ms);

// Ends whatever this owner holds.
void end_owner(LockRecord& record, const LockName& lock, const std::string& owner);

// Whether a script has changed more than the keys that have expired at `time_us`.
bool is_changed(const KeySpace::Keys& before, const KeySpace::Keys& after, std::int64_t time_us);

struct Standing {
  bool holds = false;
  bool waits = false;
  std::int64_t ends_ms = 0;  // when the hold ends by the scripts' time
};
Standing standing_of(const KeySpace::Keys& keys, const LockName& lock, const std::string& owner);

// The fencing number of the hold that force-unlock has revoked; nullopt: it has not revoked the hold of this owner.
std::optional<std::string> revoked_hold(const KeySpace::Keys& keys, const LockName& lock, const std::string& owner);

// Removes the bindings of owners that neither hold nor wait.
void drop_idle(LockRecord& record, const LockName& lock);

}  // namespace rlock::record
