// SPDX-License-Identifier: Apache-2.0
// The ACL rules that a user of the server needs for rlock, and no more.
#pragma once

#include "base/result.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

struct AclRules {
  std::vector<std::string> keys;      // globs of the keys of LockKeys
  std::vector<std::string> channels;  // globs
  std::vector<std::string> commands;  // "get", "pubsub|numsub"
};

// The rules for all locks whose names match one of the globs, with or without a {tag} in the name. Errors: those of
// LockName::parse; ErrorCode::usage for a blank, which no rule can contain.
Result<AclRules> acl_rules_for(std::span<const std::string> globs);

// Adds the rules that a node of a cluster needs besides. Redis 6 does not know all of these commands.
void add_cluster(AclRules& rights);

}  // namespace rlock
