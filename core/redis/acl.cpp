// SPDX-License-Identifier: Apache-2.0
#include "redis/acl.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include "base/text.h"
#include "engine/lock_keys.h"
#include "lock/marker.h"

namespace rlock {
namespace {

std::string_view line_of(std::string_view source, int line)
{
  for (; line > 1 && !source.empty(); --line) {
    source.remove_prefix(std::min(source.size(), source.find('\n')));
    source.remove_prefix(std::min<std::size_t>(source.size(), 1));
  }
  return source.substr(0, source.find('\n'));
}

std::string_view leading_name(std::string_view text)
{
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  return text.substr(0, text.find_first_not_of(letters));
}

// The value that lib/names.lua assigns to `name` in "local LOCK, FENCE, … = unpack(KEYS)".
std::string_view value_named(std::string_view source, std::string_view name, std::string_view list,
                             std::span<const std::string> values)
{
  const auto end = source.find(list);
  const auto begin = end == std::string_view::npos ? end : source.rfind("local ", end);
  if (begin == std::string_view::npos) {
    return {};
  }
  std::string_view names = source.substr(begin, end - begin);
  for (const std::string& value : values) {
    names.remove_prefix(std::min(names.size(), names.find(' ') + 1));
    if (leading_name(names) == name) {
      return value;
    }
  }
  return {};
}

// The first argument of a command, if it is one of the keys and channels that every script gets.
std::string argument(std::string_view source, std::string_view text, const ScriptCall& call)
{
  const std::string_view name = leading_name(text);
  const std::string_view key = value_named(source, name, " = unpack(KEYS)", call.keys);
  if (!key.empty()) {
    return " " + std::string(key);
  }
  const std::string_view channel = value_named(source, name, " = unpack(ARGV)", call.args);
  return channel.empty() ? "" : " " + std::string(channel) + (text.substr(name.size()).starts_with(" ..") ? "*" : "");
}

bool is_about_types(const Error& error)
{
  return error.code == ErrorCode::config && error.text.find("WRONGTYPE") != std::string::npos;
}

// The keys that have one type each.
std::vector<std::pair<std::string, std::string_view>> keys_with_types(const VerbRequest& request)
{
  const LockKeys keys(request.lock, request.kind);
  std::vector<std::pair<std::string, std::string_view>> all{
      {keys.fence, "string"},    {keys.holder, "hash"}, {keys.force, "hash"},
      {keys.events, "list"},     {keys.queue, "zset"},  {keys.waiters, "hash"},
      {keys.reserved, "string"}, {keys.fair, "list"},   {keys.done, "string"}};
  if (std::holds_alternative<Permits>(request.kind)) {
    all.emplace_back(keys.second, "zset");
  }
  return all;
}

Error naming_wrong_type(Error error, Transport& transport, const VerbRequest& request, const CallLimits& limit)
{
  for (const auto& [name, type] : keys_with_types(request)) {
    const std::array<std::string_view, 2> argv{"TYPE", name};
    const auto reply = transport.call(name, argv, limit);
    if (reply && reply->text != "none" && reply->text != type) {
      const std::string key = printable(name);
      std::string text = key + " is a " + printable(reply->text) + ", where a ";
      text.append(type).append(" of rlock's belongs (see rlock status ").append(key);
      return {ErrorCode::config, text.append("; or choose another key for the lock)")};
    }
  }
  return error;
}

}  // namespace

bool is_about_keys(const Error& error)
{
  return error.code == ErrorCode::refused &&
         (error.text.find("access one of the keys") != std::string::npos ||  // Redis 7.0
          error.text.find("access a key") != std::string::npos);             // 7.2
}

Error naming(std::string_view what, Error error)
{
  const std::string text = ": " + printable(what);
  error.text.insert(std::min(error.text.rfind(" ("), error.text.size()), text);
  return error;
}

std::string requests_on_line(const ScriptCall& call, int line)
{
  const std::string source = call.script.source();
  std::string_view rest = line_of(source, line);
  std::string found;
  for (auto at = rest.find("call('"); at != std::string_view::npos; at = rest.find("call('")) {
    rest.remove_prefix(at + 6);
    const std::string_view command = leading_name(rest);
    rest.remove_prefix(command.size());
    found += (found.empty() ? "" : ", ") + std::string(command);
    if (rest.starts_with("', ")) {
      found += argument(source, rest.substr(3), call);
    }
  }
  return found;
}

Error explained(Error error, Transport& transport, const ScriptRequest& request, const CallLimits& limit)
{
  const auto* const verb = std::get_if<VerbRequest>(&request);
  if (verb != nullptr && is_about_types(error)) {
    return naming_wrong_type(std::move(error), transport, *verb, limit);
  }
  if (error.script_line == 0 && !is_about_keys(error)) {
    return error;
  }
  const ScriptCall call = call_of(request, transport.is_cluster());
  if (error.script_line > 0) {
    const std::string requests = requests_on_line(call, error.script_line);
    return requests.empty() ? error : naming(requests, std::move(error));
  }
  for (const std::string& key : call.keys) {
    const std::array<std::string_view, 2> argv{"EXISTS", key};
    const auto reply = transport.call(key, argv, limit);
    if (!reply && is_about_keys(reply.error())) {
      return naming(key, std::move(error));
    }
  }
  return error;
}

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
  for (const std::string* key : {&keys.lock, &keys.fence, &keys.holder, &keys.force, &keys.events, &keys.runs,
                                 &keys.reserved, &keys.fair, &keys.second, &keys.own_number, &keys.done}) {
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
  ASSIGN_OR_RETURN(const auto name, LockName::parse(tag));
  AclRules of_tag;
  add_lock(of_tag, name);
  add_with_tag(rules.keys, of_tag.keys, tag, glob);
  add_with_tag(rules.channels, of_tag.channels, tag, glob);
  return Done{};
}

}  // namespace

Result<AclRules> acl_rules_for(std::span<const std::string> globs)
{
  AclRules rules;
  for (const std::string& glob : globs) {
    ASSIGN_OR_RETURN(const auto name, LockName::parse(glob));
    if (glob.find(' ') != std::string::npos) {
      return Error{ErrorCode::usage,
                   "--key: '" + printable(glob) + "' has a blank, which no rule of an ACL can have (try ? for it)"};
    }
    add_lock(rules, name);
    if (matches_tagged_names(glob)) {
      RETURN_IF_ERROR(add_tagged_names(rules, glob));
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
