// SPDX-License-Identifier: Apache-2.0
// Who we are and which db we mean, said before anything else. Private to wire.
#pragma once

#include "net/connection.h"

namespace rlock {

// One round trip, or none where neither a password nor a db asks for it, nor the role. Never sent together with
// another request: after a refused AUTH or SELECT that one would run as the default user, in db 0.
// A password that is refused is read from its file again, and tried once more if it has changed there.
Result<Done> shake_hands(Connection& connection, const Endpoint& endpoint, const CallLimits& limit);

}  // namespace rlock
