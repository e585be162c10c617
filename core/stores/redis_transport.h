// SPDX-License-Identifier: Apache-2.0
// A connection to a Redis server of a ServerSpec, for requests that no store sends.
#pragma once

#include <memory>
#include "redis/transport.h"
#include "stores/open.h"

namespace rlock {

// Errors: those of open_store; ErrorCode::config: the endpoint belongs to another engine.
Result<std::unique_ptr<Transport>> open_transport(const ServerSpec& server, const Endpoint& endpoint,
                                                  const Clock& clock, StopToken stop);

}  // namespace rlock
