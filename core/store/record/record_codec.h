// SPDX-License-Identifier: Apache-2.0
// The record of one lock as bytes: the keys of the lock, and the id of the last entry of the event log that is not in them.
// The bytes begin with the version of the format. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include "base/result.h"
#include "store/record/key_space.h"

namespace rlock::record {

struct LockRecord {
  KeySpace::Keys keys;
  std::int64_t log_base =
      0;  // the id of the entry before the first one in the log of `keys`; 0: that is the first of all
};

std::string encode(const LockRecord& record);

// Empty bytes are an empty record. Errors: ErrorCode::config: the format is of another version of rlock, or the bytes are no
// record.
Result<LockRecord> decode(std::string_view bytes);

}  // namespace rlock::record
