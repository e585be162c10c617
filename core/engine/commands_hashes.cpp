// SPDX-License-Identifier: Apache-2.0
// Commands on hashes.
#include "engine/commands.h"

namespace rlock::record {
namespace {

// True: the field is new.
bool put(Hash& hash, const std::string& field, const std::string& value)
{
  if (std::string* const there = value_in(&hash, field); there != nullptr) {
    *there = value;
    return false;
  }
  hash.emplace_back(field, value);
  return true;
}

Reply value_at(Hash* hash, const std::string& field)
{
  const std::string* const value = value_in(hash, field);
  return value == nullptr ? Reply{} : Reply::of(*value);
}

Reply hget(KeySpace& keys, const Words& words) { return value_at(Commands::get<Hash>(keys, words[1]), words.at(2)); }

Reply hmget(KeySpace& keys, const Words& words)
{
  Hash* const hash = Commands::get<Hash>(keys, words[1]);
  Reply values = Reply::array();
  for (std::size_t at = 2; at < words.size(); ++at) {
    values.elements.push_back(value_at(hash, words[at]));
  }
  return values;
}

Reply hset(KeySpace& keys, const Words& words)
{
  Hash& hash = Commands::make<Hash>(keys, words[1]);
  std::int64_t added = 0;
  for (std::size_t at = 2; at < words.size(); at += 2) {
    added += put(hash, words[at], words.at(at + 1)) ? 1 : 0;
  }
  return Reply::of(added);
}

Reply hdel(KeySpace& keys, const Words& words)
{
  Hash* const hash = Commands::get<Hash>(keys, words[1]);
  std::int64_t removed = 0;
  for (std::size_t at = 2; hash != nullptr && at < words.size(); ++at) {
    removed +=
        static_cast<std::int64_t>(std::erase_if(*hash, [&](const auto& each) { return each.first == words[at]; }));
  }
  Commands::drop_if_empty(keys, words[1]);
  return Reply::of(removed);
}

Reply hexists(KeySpace& keys, const Words& words)
{
  return Reply::of(hget(keys, words).kind == Reply::Kind::nil ? 0 : 1);
}

Reply hlen(KeySpace& keys, const Words& words)
{
  const Hash* const hash = Commands::get<Hash>(keys, words[1]);
  return Reply::of(hash == nullptr ? 0 : static_cast<std::int64_t>(hash->size()));
}

Reply hincrby(KeySpace& keys, const Words& words)
{
  const std::int64_t by = integer_of(words.at(3));
  Hash& hash = Commands::make<Hash>(keys, words[1]);
  const std::string* const before = value_in(&hash, words[2]);
  std::int64_t number = by;
  try {
    number += before == nullptr ? 0 : integer_of(*before);
  } catch (const CommandError&) {
    return Reply::error("ERR hash value is not an integer");
  }
  put(hash, words[2], std::to_string(number));
  return Reply::of(number);
}

enum class Part { fields, values, both };

Reply parts_of(KeySpace& keys, const std::string& key, Part part)
{
  const Hash* const hash = Commands::get<Hash>(keys, key);
  Reply all = Reply::array();
  for (const auto& [field, value] : hash == nullptr ? Hash{} : *hash) {
    if (part != Part::values) {
      all.elements.push_back(Reply::of(field));
    }
    if (part != Part::fields) {
      all.elements.push_back(Reply::of(value));
    }
  }
  return all;
}

Reply hgetall(KeySpace& keys, const Words& words) { return parts_of(keys, words[1], Part::both); }
Reply hkeys(KeySpace& keys, const Words& words) { return parts_of(keys, words[1], Part::fields); }
Reply hvals(KeySpace& keys, const Words& words) { return parts_of(keys, words[1], Part::values); }

// Redis returns all of a small hash at once.
Reply hscan(KeySpace& keys, const Words& words)
{
  return Reply::array({Reply::of("0"), parts_of(keys, words[1], Part::both)});
}

}  // namespace

void add_hash_commands(std::unordered_map<std::string, Command>& table)
{
  table.insert({{"HGET", hget},
                {"HMGET", hmget},
                {"HSET", hset},
                {"HDEL", hdel},
                {"HEXISTS", hexists},
                {"HLEN", hlen},
                {"HINCRBY", hincrby},
                {"HGETALL", hgetall},
                {"HKEYS", hkeys},
                {"HVALS", hvals},
                {"HSCAN", hscan}});
}

}  // namespace rlock::record
