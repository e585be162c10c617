// SPDX-License-Identifier: Apache-2.0
#include "sim/model_redis.h"

#include <algorithm>
#include "engine/commands.h"

namespace rlock::sim {

std::string dump(KeySpace& keys)
{
  std::string all;
  for (const auto& [key, entry] : keys.keys()) {
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
        all += " " + member + "@" + record::number_text(score);
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
