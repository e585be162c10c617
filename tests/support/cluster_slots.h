// SPDX-License-Identifier: Apache-2.0
// Moves the slots of a cluster from node to node, as redis-cli does.
#pragma once

#include "support/redis_fixture.h"

#include <deque>
#include <string>

namespace rlock::test {

// The answer to CLUSTER MYID.
std::string cluster_id(const RedisServer& node);

// Sends one command; an error reply fails the test case.
void cluster_must(const RedisServer& node, const std::vector<std::string>& words);

// Begins a move: the slot is being moved, but none of its keys has moved.
void begin_to_move_slot(const std::string& slot, const RedisServer& from, const RedisServer& to);

// Moves the slot with its keys. A move that was cut off may be repeated.
void move_slot(const std::string& slot, const RedisServer& from, const RedisServer& to, const std::string& password);

// Finishes all moves that were cut off, if both masters are still masters, and gives up the other moves. All nodes must answer.
void mend_slots(const std::deque<RedisServer>& nodes, const std::string& password);

}  // namespace rlock::test
