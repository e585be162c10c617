// SPDX-License-Identifier: Apache-2.0
// Test cases that were written for a Redis server, with the locks in PostgreSQL.
#pragma once

#include <memory>
#include "support/topology.h"

namespace rlock::test {

std::shared_ptr<Topology> postgres_topology(const RedisOptions& options);

}  // namespace rlock::test
