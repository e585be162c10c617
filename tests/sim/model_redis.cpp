// SPDX-License-Identifier: Apache-2.0
#include "sim/model_redis.h"

#include "sim/model_commands.h"

#include <algorithm>
#include <stdexcept>

namespace rlock::sim {

Value Value::list(const Words& words)
{
  Value all = array();
  for (const std::string& word : words) {
    all.elements.push_back(of(word));
  }
  return all;
}

std::string show(const Value& value)
{
  switch (value.kind) {
    case Value::Kind::nil: return "nil";
    case Value::Kind::integer: return std::to_string(value.integer);
    case Value::Kind::text: return '"' + value.text + '"';
    case Value::Kind::status: return value.text;
    case Value::Kind::error: return "error " + value.text;
    case Value::Kind::array: break;
  }
  std::string all = "[";
  for (const Value& element : value.elements) {
    all += (all.size() > 1 ? ", " : "") + show(element);
  }
  return all + "]";
}

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

Entry* ModelRedis::find(const std::string& key)
{
  const auto found = m_keys.find(key);
  if (found == m_keys.end()) {
    return nullptr;
  }
  if (found->second.expires && m_micros / 1000 > *found->second.expires) {
    m_keys.erase(found);
    return nullptr;
  }
  return &found->second;
}

void ModelRedis::drop_if_empty(const std::string& key)
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

const ModelRedis::Keys& ModelRedis::keys()
{
  std::erase_if(m_keys,
                [this](const auto& key) { return key.second.expires && m_micros / 1000 > *key.second.expires; });
  return m_keys;
}

Value ModelRedis::command(const Words& words)
{
  const auto found = command_table().find(words.front());
  if (found == command_table().end()) {
    throw std::logic_error("the model of Redis does not know the command " + words.front());
  }
  try {
    return found->second(*this, words);
  } catch (const CommandError& refused) {
    return Value::error(refused.text);
  }
}

std::string dump(ModelRedis& redis)
{
  std::string all;
  for (const auto& [key, entry] : redis.keys()) {
    all += key + (entry.expires ? " (with a ttl): " : " (without a ttl): ");
    if (const auto* text = std::get_if<std::string>(&entry.data)) {
      all += "string " + *text;
    } else if (const auto* hash = std::get_if<Hash>(&entry.data)) {
      Hash sorted = *hash;
      std::sort(sorted.begin(), sorted.end());
      all += "hash";
      for (const auto& [field, value] : sorted) {
        all += " {" + field + "}=" + value;
      }
    } else if (const auto* set = std::get_if<SortedSet>(&entry.data)) {
      all += "zset";
      for (const auto& [score, member] : set->order) {
        all += " " + member + "@" + number_text(score);
      }
    } else {
      all += "list";
      for (const std::string& element : std::get<List>(entry.data)) {
        all += " {" + element + "}";
      }
    }
    all += "\n";
  }
  return all;
}

}  // namespace rlock::sim
