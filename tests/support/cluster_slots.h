// SPDX-License-Identifier: Apache-2.0
// Moving the slots of a cluster from node to node, as redis-cli does it.
#pragma once

#include "support/redis_fixture.h"

#include <deque>
#include <string>

namespace rlock::test {

// CLUSTER MYID
std::string cluster_id(const RedisServer& node);

// One command; an error reply fails the test case.
void cluster_must(const RedisServer& node, const std::vector<std::string>& words);

// The slot is being moved, but none of its keys has moved.
void begin_to_move_slot(const std::string& slot, const RedisServer& from, const RedisServer& to);

// Keys and all. A move that was cut off may be done again.
void move_slot(const std::string& slot, const RedisServer& from, const RedisServer& to, const std::string& password);

// Finishes all moves that were cut off, where both masters still are masters, and gives up the others. All nodes answer.
void mend_slots(const std::deque<RedisServer>& nodes, const std::string& password);

}  // namespace rlock::test
