// SPDX-License-Identifier: Apache-2.0
// The event loop of a keeper. Private to the keeper.
#pragma once

#include <optional>
#include "base/fd.h"
#include "process/script_tree.h"
#include "run/keeper.h"

namespace rlock {

// Sends the only message between `rlock acquire` and its keeper. From the keeper: the keeper holds the lock now. To the keeper:
// the caller has its token.
void send_byte(int socket);

// Holds the lock until there is a reason to end, and releases the lock. `caller`: the socket to `rlock acquire`. False: the
// keeper could not begin, because there was no descriptor or memory, and has sent no message.
bool run_keeper(const KeeperTask& task, Fd caller, std::optional<ScriptPipe> pipe);

}  // namespace rlock
