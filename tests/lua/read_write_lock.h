// SPDX-License-Identifier: Apache-2.0
// A read-write lock whose callers do not wait, and its keys.
#pragma once

#include "lua/scripted_lock.h"

#include <string>

namespace rlock::test {

inline constexpr const char* rw_channel = "redisson_rwlock:{k}";

struct ReadWriteLock : ScriptedLock {
  ReadWriteLock() : ScriptedLock(Reader{}) {}
  Reply read(const std::string& owner, int ttl = 30'000) const { return acquire_as(Reader{}, owner, "try", ttl); }
  Reply write(const std::string& owner, int ttl = 30'000) const { return acquire_as(Writer{}, owner, "try", ttl); }
  Reply nested(const LockKind& kind, const std::string& owner, const std::string& hold, int ttl = 30'000) const
  {
    return eval_as(kind, scripts_of(kind).acquire, owner, {hold, std::to_string(ttl), "host=h", "try", "0", "0"});
  }
  Reply end_nested(const LockKind& kind, const std::string& owner, const std::string& hold) const
  {
    return eval_as(kind, scripts_of(kind).release, owner, {hold, "0", "0", "0"});
  }
  Reply end_read(const std::string& owner) const { return release_as(Reader{}, owner); }
  Reply end_write(const std::string& owner) const { return release_as(Writer{}, owner); }
};

inline std::string timeout_of(const std::string& owner, int hold = 1)
{
  return "{k}:" + owner + ":rwlock_timeout:" + std::to_string(hold);
}

}  // namespace rlock::test

#define RW_LOCK_CASE(title) CASE_WITH(rlock::test::ReadWriteLock, lock, title)
