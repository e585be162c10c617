// SPDX-License-Identifier: Apache-2.0
// What a user of the server must be allowed to do so that rlock works for it, and no more.
#pragma once

#include "base/result.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

struct AclRules {
  std::vector<std::string> keys;      // globs, as LockKeys names them
  std::vector<std::string> channels;  // globs
  std::vector<std::string> commands;  // "get", "pubsub|numsub"
};

// For all locks whose names match one of the globs, with or without a {tag} in the name. Faults: those of LockName::parse, and usage for a blank, which no rule can have.
Result<AclRules> acl_rules_for(std::span<const std::string> globs);

// What is needed besides where the server is a node of a cluster; Redis 6 knows some of it not.
void add_cluster(AclRules& rights);

}  // namespace rlock
