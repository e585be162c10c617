// SPDX-License-Identifier: Apache-2.0
// The event log of a lock: its last entries are in the record, all of them stand beside it in the store. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include "engine/key_space.h"
#include "engine/record_backend.h"
#include "engine/record_codec.h"

namespace rlock::record {

// The entries of the event log that stay in the record, because scripts look for the last hand-over of an owner. Each adds some
// 250 bytes to every commit.
inline constexpr std::size_t entries_in_record = 24;

// The fencing number in an entry of which the store knows the number with the commit alone: Committed::order. It is that of a
// contender which the same commit has put into its line.
inline constexpr std::string_view fence_of_commit = "commit";
// Puts the number into the entry, for Backend::events(). Another entry stays as it is.
void set_fence_of_commit(std::string& entry, std::int64_t order);

// The part of the event log that is in the record.
struct RecordedLog {
  std::int64_t base;  // the id of the entry before the first one
  List entries;
  bool is_over;  // its time has passed: what the store has up to `base` is of no use
};

RecordedLog log_in(const LockRecord& record, const std::string& log_key, std::int64_t time_us);

// How the keys that a script has changed change the whole log. The log keeps event_count entries, and is cut when a quarter as many
// have come.
LogChange change_of(const RecordedLog& before, const KeySpace::Keys& after, const std::string& log_key);

// Leaves the last entries of the log in the record: `most` of them, at least 1.
void shorten_log(LockRecord& record, const std::string& log_key, std::size_t most = entries_in_record);

}  // namespace rlock::record
