// SPDX-License-Identifier: Apache-2.0
#include "engine/key_space.h"

#include "engine/commands.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace rlock::record {
namespace {

constexpr std::array<std::string_view, 23> reading_commands{
    "EXISTS", "TYPE",  "PTTL",   "GET",     "LRANGE",        "LINDEX",  "TIME",  "PUBLISH",
    "PUBSUB", "HGET",  "HMGET",  "HEXISTS", "HLEN",          "HGETALL", "HKEYS", "HVALS",
    "HSCAN",  "ZCARD", "ZCOUNT", "ZRANGE",  "ZRANGEBYSCORE", "ZRANK",   "ZSCORE"};

}  // namespace

bool SortedSet::add(const std::string& member, double score)
{
  const auto [place, is_new] = scores.try_emplace(member, score);
  if (!is_new) {
    order.erase({place->second, member});
    place->second = score;
  }
  order.insert({score, member});
  return is_new;
}

bool SortedSet::remove(const std::string& member)
{
  const auto found = scores.find(member);
  if (found == scores.end()) {
    return false;
  }
  order.erase({found->second, member});
  scores.erase(found);
  return true;
}

Entry* KeySpace::find(const std::string& key)
{
  const auto found = m_keys.find(key);
  if (found == m_keys.end()) {
    return nullptr;
  }
  if (found->second.has_expired(m_micros)) {
    m_keys.erase(found);
    return nullptr;
  }
  return &found->second;
}

void KeySpace::drop_if_empty(const std::string& key)
{
  const auto found = m_keys.find(key);
  const auto is_empty = [](const auto& data) {
    using Data = std::decay_t<decltype(data)>;
    if constexpr (std::is_same_v<Data, SortedSet>) {
      return data.scores.empty();
    } else if constexpr (std::is_same_v<Data, std::string>) {
      return false;
    } else {
      return data.empty();
    }
  };
  if (found != m_keys.end() && std::visit(is_empty, found->second.data)) {
    m_keys.erase(found);
  }
}

const KeySpace::Keys& KeySpace::keys()
{
  std::erase_if(m_keys, [this](const auto& key) { return key.second.has_expired(m_micros); });
  return m_keys;
}

Reply KeySpace::command(const Words& words)
{
  const auto found = command_table().find(words.front());
  if (found == command_table().end()) {
    return Reply::error("ERR the record engine does not know the command " + words.front());
  }
  if (words.size() < 2 && words.front() != "TIME") {
    return Reply::error("ERR too few arguments for " + words.front());
  }
  m_may_have_changed =
      m_may_have_changed || std::ranges::find(reading_commands, words.front()) == reading_commands.end();
  try {
    return found->second(*this, words);
  } catch (const CommandError& refused) {
    return Reply::error(refused.text);
  } catch (const std::out_of_range&) {
    return Reply::error("ERR too few arguments for " + words.front());
  }
}

}  // namespace rlock::record
