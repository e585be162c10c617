// SPDX-License-Identifier: Apache-2.0
// The keeper's event loop.
#pragma once

#include "run/keeper.h"

namespace rlock {

// The only message between `rlock acquire` and its keeper. From the keeper: it holds the lock now. To the keeper: the
// caller has its token.
void send_byte(int socket);

// Holds the lock until a reason to end comes, and releases it. `caller`: the socket to `rlock acquire`. False: the
// keeper could not begin, because there was no descriptor or memory, and has sent nothing.
bool run_keeper(const KeeperTask& task, Fd caller);

}  // namespace rlock
