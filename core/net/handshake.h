// SPDX-License-Identifier: Apache-2.0
// Logs in, selects the db and checks the role, before any other request. Private to net.
#pragma once

#include "net/connection.h"

namespace rlock {

// Takes one round trip, or none without a password, a db and Endpoint::must_be_master. The handshake is never sent together with
// another request, because that request would run as the default user or in db 0 after a refused AUTH or SELECT. When the server
// refuses the password, the function reads the password file again and tries once more if the password has changed.
Result<Done> shake_hands(Connection& connection, const Endpoint& endpoint, const CallLimits& limit);

}  // namespace rlock
