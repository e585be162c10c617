// SPDX-License-Identifier: Apache-2.0
// Logs in, selects the db and checks the role, before any other request. Private to net.
#pragma once

#include "net/connection.h"

namespace rlock {

// One round trip; none without a password, a db and Endpoint::must_be_master. Never sent together with another request,
// which would run as the default user or in db 0 after a refused AUTH or SELECT. A refused password is read from its
// file again and tried once more if it has changed there.
Result<Done> shake_hands(Connection& connection, const Endpoint& endpoint, const CallLimits& limit);

}  // namespace rlock
