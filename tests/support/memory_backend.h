// SPDX-License-Identifier: Apache-2.0
// Records of locks in the memory of the test program, for the record engine: what a database is for it, with real messages.
#pragma once

#include <memory>
#include <string>
#include "base/clock.h"
#include "engine/record_backend.h"

namespace rlock::test {

// Adds the schemes `records` and `record-sessions` to the table of engines: records:NAME is the store NAME, which lives as long as
// the process. The second one has presences in place of a clock, and three members, of which one is cut off: it answers keep-alives,
// and nothing else. May be called again.
void add_record_engine();

// A backend on that store. `clock` must outlive it, and is the clock of the store.
std::unique_ptr<record::Backend> memory_backend(const std::string& name, const Clock& clock);
// The same with presences. `wall_ahead_us`: how wrong the clock of this client is.
std::unique_ptr<record::Backend> session_backend(const std::string& name, const Clock& clock,
                                                 std::int64_t wall_ahead_us = 0);
// How many presences there are.
std::size_t presences_in(const std::string& name, const Clock& clock);

}  // namespace rlock::test
