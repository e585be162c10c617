// SPDX-License-Identifier: Apache-2.0
// The record of one lock as bytes: the keys of the lock, the id of the last entry of the event log that is not in them, and in a
// store with presences what its owners are bound to. The bytes begin with the version of the format. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>
#include "base/result.h"
#include "engine/key_space.h"
#include "engine/presence.h"

namespace rlock::record {

// A presence that keeps the hold, the claim or the place in the queue of an owner.
struct BoundPresence {
  PresenceId id;
  std::int64_t lease_ms;
  Keeping keeping;
};
// By owner. An owner with several presences, which several processes keep, is over when all of them are gone.
using Bindings = std::map<std::string, std::vector<BoundPresence>>;

struct LockRecord {
  KeySpace::Keys keys;
  std::int64_t log_base =
      0;  // the id of the entry before the first one in the log of `keys`; 0: that is the first of all
  std::int64_t time_us = 0;  // of the last script, in a store with presences: no later script has an earlier time
  Bindings bindings = {};
};

std::string encode(const LockRecord& record);

// Empty bytes are an empty record. Errors: ErrorCode::config: the format is of another version of rlock, or the bytes are no
// record.
Result<LockRecord> decode(std::string_view bytes);

}  // namespace rlock::record
