// SPDX-License-Identifier: Apache-2.0
#include "sim/real_redis.h"

namespace rlock::sim {

Reply comparable(const Reply& reply)
{
  Reply result = reply;
  result.is_status = false;
  if (reply.is_error()) {
    result.text = reply.text.substr(0, reply.text.find(' '));
  }
  for (Reply& element : result.elements) {
    element = comparable(element);
  }
  return result;
}

KeySpace::Keys keys_of(const test::RedisServer& server)
{
  KeySpace::Keys keys;
  for (const std::string& key : test::as_texts(server.command({"KEYS", "*"}))) {
    Entry entry;
    const std::string type = server.command({"TYPE", key}).text;
    if (type == "string") {
      entry.data = server.command({"GET", key}).text;
    } else if (type == "list") {
      entry.data = test::as_texts(server.command({"LRANGE", key, "0", "-1"}));
    } else if (type == "hash") {
      const Words words = test::as_texts(server.command({"HGETALL", key}));
      Hash& hash = entry.data.emplace<Hash>();
      for (std::size_t i = 0; i < words.size(); i += 2) {
        hash.emplace_back(words[i], words[i + 1]);
      }
    } else {
      const Words words = test::as_texts(server.command({"ZRANGE", key, "0", "-1", "WITHSCORES"}));
      SortedSet& set = entry.data.emplace<SortedSet>();
      for (std::size_t i = 0; i < words.size(); i += 2) {
        set.add(words[i], std::stod(words[i + 1]));
      }
    }
    if (test::as_int(server.command({"PTTL", key})) >= 0) {
      entry.expires = INT64_MAX;
    }
    keys[key] = std::move(entry);
  }
  return keys;
}

}  // namespace rlock::sim
