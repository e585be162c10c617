// SPDX-License-Identifier: Apache-2.0
// Test cases that were written for a Redis server, with the locks in a database.
#pragma once

#include <memory>
#include "support/databases.h"
#include "support/topology.h"

namespace rlock::test {

std::shared_ptr<Topology> database_topology(const DatabaseRow& database, const RedisOptions& options);
std::shared_ptr<Topology> database_topology(std::string_view name, std::shared_ptr<DatabaseServer> server);

}  // namespace rlock::test
