// SPDX-License-Identifier: Apache-2.0
// What the facts about a server mean for locks. Pure.
#pragma once

#include "base/host.h"
#include "doctor/facts.h"
#include "doctor/finding.h"

#include <span>
#include <vector>

namespace rlock {

// In the order in which people want to read it. `ttl` is what locks there are to have.
std::vector<Finding> judge(const Facts& facts, Millis ttl);

// Of several servers that are to be a quorum: whether they are independent.
std::vector<Finding> rules_together(std::span<const Facts> servers);

std::vector<Finding> rules_host(const HostFacts& facts);

}  // namespace rlock
