// SPDX-License-Identifier: Apache-2.0
// Decides what the facts about servers and this host mean for locks. Pure functions.
#pragma once

#include "base/host.h"
#include "doctor/facts.h"
#include "doctor/finding.h"

#include <span>
#include <vector>

namespace rlock {

// The findings about a server, in the order in which people read them. `ttl`: the ttl that the locks on this server will have.
std::vector<Finding> check_server(const Facts& facts, Millis ttl);

// Whether several servers are independent, so that they can form a quorum. Empty for one server.
std::vector<Finding> check_quorum(std::span<const Facts> servers);

// Whether rlock can guard jobs on this host.
std::vector<Finding> check_host(const HostFacts& facts);

}  // namespace rlock
