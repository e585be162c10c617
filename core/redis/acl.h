// SPDX-License-Identifier: Apache-2.0
// The rights that rlock needs by ACL: their list, and the one that is missing when a server refuses a script.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "base/result.h"
#include "engine/script_host.h"
#include "redis/transport.h"

namespace rlock {

// Whether the server refused a request because of one of its keys, and not because of the command.
bool is_about_keys(const Error& error);

// The error with `what` inserted before the advice in its parentheses.
Error naming(std::string_view what, Error error);

// The commands on that line of the script, counted from 1, with the key or channel that the line names:
// "HGET rlock:holder:{k}". Empty: the line has no command.
std::string requests_on_line(const ScriptCall& call, int line);

// The error of the request, with the command, key or channel that the server refused, or with the key of the wrong type. May send a
// request for each key of the script to find that key.
Error explained(Error error, Transport& transport, const ScriptRequest& request, const CallLimits& limit);

// The ACL rules that a user of the server needs for rlock, and no more.

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
