// SPDX-License-Identifier: Apache-2.0
#include "lock/rights.h"

#include "base/text.h"
#include "lock/names.h"

#include <algorithm>
#include <array>

namespace rlock {
namespace {

// A unit test compares them with the scripts.
constexpr auto commands = std::to_array<std::string_view>({
    // what we send ourselves, beside HELLO and AUTH, which need no rule
    "eval", "evalsha", "exists", "info", "scan", "select", "subscribe", "wait", "zscore",
    // what the scripts call
    "del", "get", "hdel", "hexists", "hget", "hgetall", "hincrby", "hkeys", "hlen", "hmget", "hscan", "hset",
    "hvals", "lindex", "lrange", "ltrim", "pexpire", "pttl", "publish", "pubsub|numsub", "rpush", "set", "time", "type",
    "zadd", "zcard", "zcount", "zpopmin", "zrange", "zrangebyscore", "zrank", "zrem", "zremrangebyscore",
});

constexpr auto cluster_commands =
    std::to_array<std::string_view>({"asking", "cluster|slots", "pubsub|shardnumsub", "spublish", "ssubscribe"});

// All that is named after a lock: a name that is a glob makes globs of them.
void add(Rights& rights, const LockName& glob)
{
  const LockKeys keys(glob);
  for (const std::string* key :
       {&keys.lock, &keys.fence, &keys.holder, &keys.force, &keys.events, &keys.reserved, &keys.fair_queue,
        &keys.second, &keys.done}) {
    rights.keys.push_back(*key);
  }
  rights.keys.push_back(keys.reads + "*:rwlock_timeout:*");

  for (const Mode& mode : {Mode(Plain{}), Mode(Writer{}), Mode(Permits{}), Mode(PlainString{})}) {
    const LockKeys of_kind(glob, mode);
    rights.keys.insert(rights.keys.end(), {of_kind.queue, of_kind.waiters});
    if (!of_kind.channel.empty()) {
      rights.channels.push_back(of_kind.channel);
    }
  }
  rights.channels.push_back(keys.channel + ":*");  // each who waits for a fair lock of Redisson's has its own
  rights.channels.push_back(keys.taken_channel);
  rights.channels.push_back(keys.owner_channel + "*");
  rights.channels.push_back(keys.done);
}

}  // namespace

Result<Rights> rights_for(std::span<const std::string> globs)
{
  Rights rights;
  for (const std::string& glob : globs) {
    const auto name = LockName::parse(glob);
    if (!name) {
      return name.error();
    }
    if (glob.find(' ') != std::string::npos) {
      return Error{Fault::usage, "--key: '" + printable(glob) + "' has a blank, which no rule of an ACL can have (try ? for it)"};
    }
    add(rights, *name);
  }
  // Redis refuses a pattern that follows ~*, which has them all.
  if (std::find(rights.keys.begin(), rights.keys.end(), "*") != rights.keys.end()) {
    rights.keys = {"*"};
  }
  rights.commands.assign(commands.begin(), commands.end());
  return rights;
}

void add_cluster(Rights& rights)
{
  rights.commands.insert(rights.commands.end(), cluster_commands.begin(), cluster_commands.end());
}

}  // namespace rlock
