// SPDX-License-Identifier: Apache-2.0
// An engine that keeps locks in the memory of the test program. The engine proves that an engine is a folder and a row: it knows
// no Redis, and rlock knows the engine by its URL scheme alone. The engine offers list and force-unlock, but no event log, no
// memory of successes and no part in a quorum.
#pragma once

#include "store/open.h"

#include <memory>
#include <string>

namespace rlock::test {

// Adds the scheme `memory` to the table of engines: memory:NAME is the server NAME, which lives as long as the process.
// May be called again.
void add_memory_engine();

// A store on that server. `clock` must outlive the store, and is the clock of the server.
std::unique_ptr<LockStore> memory_store(const std::string& name, const Clock& clock);

}  // namespace rlock::test
