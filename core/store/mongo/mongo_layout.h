// SPDX-License-Identifier: Apache-2.0
// The document of a lock, and the rights on it that a user needs.
//
//   _id            the name of the lock
//   version        a random number; changes with each commit and with each new listener
//   record         the record of the lock (store/record)
//   locked_by, lock_until, forget_at   the record's Face; missing: empty, or 0
//   events         the event log: {e17: "...", e18: "..."}
//   listeners      {l0123456789abcdef: {channels: [...], seen: DATE}}, the first one first. Each listener renews `seen`, the
//                  server's time, every listener_beat; one that is silent for listener_life is dead
//   messages       [{id: NUMBER, channel: "...", text: "...", at: DATE}], the oldest first: those of the last message_life, for
//                  listeners to find
//
// One document changes atomically in MongoDB. So a commit is one update of the document that has this version, with its events
// and messages in it. RecordHost keeps the event log short (event_count).
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include "base/clock.h"

namespace rlock::mongo {

inline constexpr Millis listener_beat{2000};
inline constexpr Millis listener_life{8000};
inline constexpr Millis message_life{10'000};

// What an administrator runs in mongosh on the database, so that `user` may keep locks there.
inline std::string rights_script(std::string_view user)
{
  std::string quoted;
  for (const char byte : user) {
    quoted += byte == '"' || byte == '\\' ? "\\" + std::string(1, byte) : std::string(1, byte);
  }
  return R"(db.createCollection("rlock_lock")
db.rlock_lock.createIndex({locked_by: 1}, {sparse: true})
db.createRole({role: "rlock", roles: [], privileges: [
  {resource: {db: db.getName(), collection: "rlock_lock"}, actions: ["find", "insert", "update", "remove"]}]})
db.createUser({user: ")" +
         quoted + R"(", pwd: passwordPrompt(), roles: ["rlock"]})
)";
}

}  // namespace rlock::mongo
