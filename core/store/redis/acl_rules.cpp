// SPDX-License-Identifier: Apache-2.0
#include "store/redis/acl_rules.h"

#include "base/text.h"
#include "lock/data_age.h"
#include "store/redis/lock_keys.h"

#include <algorithm>
#include <array>

namespace rlock {
namespace {

// A unit test compares this list with the scripts.
constexpr auto commands = std::to_array<std::string_view>({
    // sent by rlock itself, besides HELLO and AUTH, which need no rule
    "eval",
    "evalsha",
    "exists",
    "info",
    "scan",
    "select",
    "subscribe",
    "wait",
    "zscore",
    // called by the scripts
    "del",
    "get",
    "hdel",
    "hexists",
    "hget",
    "hgetall",
    "hincrby",
    "hkeys",
    "hlen",
    "hmget",
    "hscan",
    "hset",
    "hvals",
    "lindex",
    "lrange",
    "ltrim",
    "pexpire",
    "pttl",
    "publish",
    "pubsub|numsub",
    "rpush",
    "set",
    "time",
    "type",
    "zadd",
    "zcard",
    "zcount",
    "zpopmin",
    "zrange",
    "zrangebyscore",
    "zrank",
    "zrem",
    "zremrangebyscore",
});

constexpr auto cluster_commands =
    std::to_array<std::string_view>({"asking", "cluster|slots", "pubsub|shardnumsub", "spublish", "ssubscribe"});

// The keys and channels of a lock. A name that is a glob makes globs of them.
void add_lock(AclRules& rules, const LockName& glob)
{
  const LockKeys keys(glob);
  for (const std::string* key : {&keys.lock, &keys.fence, &keys.holder, &keys.force, &keys.events, &keys.reserved,
                                 &keys.fair_queue, &keys.second, &keys.own_number, &keys.done}) {
    rules.keys.push_back(*key);
  }
  rules.keys.push_back(keys.reads + "*:rwlock_timeout:*");

  for (const KindDescriptor& kind : kind_table) {
    if (kind_in_key(kind.key_content) != &kind) {
      continue;  // the reader's keys are the writer's
    }
    const LockKeys of_kind(glob, kind.inspect_as);
    rules.keys.insert(rules.keys.end(), {of_kind.queue, of_kind.waiters});
    if (!of_kind.channel.empty()) {
      rules.channels.push_back(of_kind.channel);
    }
  }
  rules.channels.push_back(keys.channel + ":*");  // each waiter for a fair lock of Redisson has its own
  rules.channels.push_back(keys.taken_channel);
  rules.channels.push_back(keys.owner_channel + "*");
  rules.channels.push_back(keys.done);
}

// A wildcard also matches names with a {tag}, such as app:{eu}:1, and the keys of such a lock have other names.
bool matches_tagged_names(const std::string& glob)
{
  return glob.find('{') == std::string::npos && glob.find_first_of("*?[") != std::string::npos;
}

// Appends the patterns of a name with a tag, with the glob in place of the tag, but those that the glob itself covers.
void add_with_tag(std::vector<std::string>& patterns, const std::vector<std::string>& with_tag, const std::string& tag,
                  const std::string& glob)
{
  for (std::string pattern : with_tag) {
    pattern.replace(pattern.find(tag), tag.size(), glob);
    if (!pattern.starts_with(glob) || (pattern != glob && !glob.ends_with('*'))) {
      patterns.push_back(std::move(pattern));
    }
  }
}

Result<Done> add_tagged_names(AclRules& rules, const std::string& glob)
{
  const std::string tag = "{tag}";
  const auto name = LockName::parse(tag);
  if (!name) {
    return name.error();
  }
  AclRules of_tag;
  add_lock(of_tag, *name);
  add_with_tag(rules.keys, of_tag.keys, tag, glob);
  add_with_tag(rules.channels, of_tag.channels, tag, glob);
  return Done{};
}

}  // namespace

Result<AclRules> acl_rules_for(std::span<const std::string> globs)
{
  AclRules rules;
  for (const std::string& glob : globs) {
    const auto name = LockName::parse(glob);
    if (!name) {
      return name.error();
    }
    if (glob.find(' ') != std::string::npos) {
      return Error{ErrorCode::usage,
                   "--key: '" + printable(glob) + "' has a blank, which no rule of an ACL can have (try ? for it)"};
    }
    add_lock(rules, *name);
    if (matches_tagged_names(glob)) {
      if (const auto added = add_tagged_names(rules, glob); !added) {
        return added.error();
      }
    }
  }
  rules.keys.emplace_back(marker_key);
  // Redis refuses a pattern that follows ~*, because that covers all keys.
  if (std::find(rules.keys.begin(), rules.keys.end(), "*") != rules.keys.end()) {
    rules.keys = {"*"};
  }
  rules.commands.assign(commands.begin(), commands.end());
  return rules;
}

void add_cluster(AclRules& rules)
{
  rules.commands.insert(rules.commands.end(), cluster_commands.begin(), cluster_commands.end());
}

}  // namespace rlock
