// SPDX-License-Identifier: Apache-2.0
// What a keeper does with its days.
#pragma once

#include "run/keeper.h"

namespace rlock {

// One byte, to the other end of a keeper's socket: from the keeper, that it has taken over; to the keeper, that the
// caller has its token.
void say(int socket);

// Keeps the lock and parts from it; when it returns the keeper's work is done. False: it could not begin, for want of a
// thread, a descriptor or memory, and has not said that it has taken over.
bool keep(const KeeperTask& task, Fd socket);

}  // namespace rlock
