// SPDX-License-Identifier: Apache-2.0
// What each adapter for a table of ShedLock must do, below the scripts.
#pragma once

#include <functional>
#include <string>
#include "engine/record_backend.h"
#include "support/limits.h"
#include "support/test.h"

namespace rlock::test {

// A commit replaces exactly what was read: a row without a record, a hold of ShedLock, one that has ended, or no row. `lock`
// takes the lock of that name for a minute as `java`, if it is free; `unlock` ends the hold. Both as ShedLock does.
inline void expect_exact_commits(record::Backend& backend, const std::function<void(const std::string&)>& lock,
                                 const std::function<void(const std::string&)>& unlock)
{
  const auto read = [&](const char* name) {
    const auto state = backend.read(name, soon());
    REQUIRE_MESSAGE(state, state.error().text);
    return *state;
  };
  // Empty: a conflict.
  const auto write = [&](const char* name, const record::Snapshot& seen, const record::Face& face) {
    const auto done =
        backend.write_if(name, seen.version, {.bytes = "record", .face = face, .log = {}, .messages = {}}, soon());
    REQUIRE_MESSAGE(done, done.error().text);
    const auto* const committed = std::get_if<record::Committed>(&*done);
    return committed == nullptr ? std::string() : committed->version;
  };
  const auto face_for = [](const record::Snapshot& seen) {
    return record::Face{.holder = "rlock", .until_us = seen.time_us / 1000 * 1000 + 60'000'000};
  };

  const record::Snapshot none = read("new");
  CHECK(none.version.empty());
  lock("new");
  CHECK(write("new", none, face_for(none)).empty());

  lock("k");
  const record::Snapshot held = read("k");
  CHECK(held.bytes.empty());
  REQUIRE(held.face);
  CHECK(held.face->holder == "java");
  unlock("k");
  CHECK(write("k", held, face_for(held)).empty());
  const record::Snapshot over = read("k");
  lock("k");
  CHECK(write("k", over, face_for(over)).empty());
  CHECK(read("k").face->holder == "java");
  unlock("k");

  const record::Snapshot free = read("k");
  const record::Face mine = face_for(free);
  const std::string version = write("k", free, mine);
  CHECK_FALSE(version.empty());
  lock("k");
  const record::Snapshot own = read("k");
  CHECK(own.version == version);
  CHECK(own.bytes == "record");
  CHECK(own.face->holder == "rlock");
  CHECK(own.face->until_us == mine.until_us);
  CHECK_FALSE(write("k", own, {}).empty());
  const record::Snapshot released = read("k");
  CHECK(released.face->until_us <= released.time_us);
  CHECK(released.face->holder == "rlock");  // as ShedLock leaves it
  lock("k");
  CHECK(read("k").face->holder == "java");
}

}  // namespace rlock::test
