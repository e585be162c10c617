// SPDX-License-Identifier: Apache-2.0
// An engine that keeps locks in the memory of the test program. It proves that an engine is a folder and a row: it knows no
// Redis, and rlock knows it by its URL scheme alone. It offers list and force-unlock, and no event log, no memory of
// successes and no place in a quorum. With HoldsEnd::with_session it does what consensus stores do: a lease is shorter than what was
// asked for, counts from an earlier moment, and is that of a session, so that it ends unless the session is kept alive; nothing is
// kept after a release, and a token alone holds nothing.
#pragma once

#include "stores/open.h"

#include <memory>
#include <string>

namespace rlock::test {

// When the holds of an owner end that are not renewed.
enum class HoldsEnd { with_ttl, with_session };

// Adds the schemes `memory` and `memory-sessions` to the table of engines: memory:NAME is the server NAME, which lives as long as
// the process. May be called again.
void add_memory_engine();

// A store on that server. `clock` must outlive it, and is the clock of the server.
std::unique_ptr<LockStore> memory_store(const std::string& name, const Clock& clock,
                                        HoldsEnd holds_end = HoldsEnd::with_ttl);

}  // namespace rlock::test
