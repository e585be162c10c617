// SPDX-License-Identifier: Apache-2.0
// For a connection to a Redis server of a ServerSpec, for requests that no store sends: open_transport.
#pragma once

#include "redis/transport.h"
#include "stores/open.h"

namespace rlock {

// How its private server is found and started.
LocalServerOptions local_options(const ServerSpec& server, const Endpoint& endpoint);

}  // namespace rlock
