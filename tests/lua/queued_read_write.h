// SPDX-License-Identifier: Apache-2.0
// A read-write lock whose callers wait, and what a waiter of any lock hears.
#pragma once

#include "lua/scripted_lock.h"

#include <string>

namespace rlock::test {

struct QueuedReadWrite : ScriptedLock {
  QueuedReadWrite() : ScriptedLock(Reader{}) {}
  Reply read(const std::string& owner, const std::string& options = "wait", int ttl = 30'000) const
  {
    return acquire_as(Reader{}, owner, options, ttl);
  }
  Reply write(const std::string& owner, const std::string& options = "wait", int ttl = 30'000,
              const std::string& ticket = "0") const
  {
    return acquire_as(Writer{}, owner, options, ttl, ticket);
  }
  Reply end_read(const std::string& owner) const { return release_as(Reader{}, owner); }
  Reply end_write(const std::string& owner) const { return release_as(Writer{}, owner); }
};

}  // namespace rlock::test

#define QUEUED_RW_CASE(title) CASE_WITH(rlock::test::QueuedReadWrite, lock, title)
