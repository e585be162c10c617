// SPDX-License-Identifier: Apache-2.0
// How long --sync waits for the replicas.
#pragma once

#include "lock/store.h"

#include <algorithm>

namespace rlock {

// The job must start with most of its lease left, and WAIT must answer before the connection times out.
inline Sync sync_of(unsigned replicas, Millis ttl, Millis server_timeout)
{
  return {.replicas = replicas, .within = std::min(server_timeout / 2, ttl / 4)};
}

}  // namespace rlock
