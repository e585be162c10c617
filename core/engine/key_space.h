// SPDX-License-Identifier: Apache-2.0
// The keys of Redis in memory, with the commands that the scripts of lua/ use. It has no clock: the caller says what time it
// is. A command or a form of a command that it does not know is an error reply, so the script fails and nothing is written.
// tests/sim/differential_test.cpp compares it with a real server.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/reply.h"

namespace rlock::record {

using Words = std::vector<std::string>;

struct SortedSet {
  std::map<std::string, double> scores;
  std::set<std::pair<double, std::string>> order;
  bool add(const std::string& member, double score);  // false: only the score was changed
  bool remove(const std::string& member);
  friend bool operator==(const SortedSet&, const SortedSet&) = default;
};
using Hash = std::vector<std::pair<std::string, std::string>>;  // in the order of a small hash of Redis
using List = Words;

// In ms since 1970. The arithmetic with a greater number would overflow.
inline constexpr std::int64_t latest_expiry = std::int64_t{1} << 53;

struct Entry {
  std::variant<std::string, Hash, SortedSet, List> data;
  std::optional<std::int64_t> expires;  // in ms; the key still exists then, as in Redis
  [[nodiscard]] bool has_expired(std::int64_t micros) const { return expires && micros / 1000 > *expires; }
  friend bool operator==(const Entry&, const Entry&) = default;
};

// Not thread-safe.
class KeySpace {
 public:
  // The time of all commands until the next call; microseconds since 1970.
  void set_time(std::int64_t micros) { m_micros = micros; }
  [[nodiscard]] std::int64_t time() const { return m_micros; }

  // Delivers a message, and returns how many subscribers got it.
  std::function<std::int64_t(const std::string& channel, const std::string& text)> on_publish;
  std::function<std::int64_t(const std::string& channel)> count_subscribers;

  Reply command(const Words& words);

  using Keys = std::map<std::string, Entry>;
  [[nodiscard]] const Keys& keys();  // without those that have expired
  void replace(Keys keys)
  {
    m_keys = std::move(keys);
    m_may_have_changed = false;
  }
  // Leaves none.
  Keys take_keys()
  {
    (void)keys();
    return std::exchange(m_keys, {});
  }
  // Whether a command that may write was executed since replace(). Keys that have expired are no change.
  [[nodiscard]] bool may_have_changed() const { return m_may_have_changed; }

 private:
  friend struct Commands;
  Entry* find(const std::string& key);
  void drop_if_empty(const std::string& key);

  std::int64_t m_micros = 0;
  Keys m_keys;
  bool m_may_have_changed = false;
};

// The data of the key, also if it has expired. nullptr: there is no such key, or it is of another type. `keys`: KeySpace::Keys.
template <typename Data>
auto* data_at(auto& keys, const std::string& key)
{
  const auto found = keys.find(key);
  return found == keys.end() ? nullptr : std::get_if<Data>(&found->second.data);
}
// data_at, but it makes the key where there is none, and replaces data of another type.
template <typename Data>
Data& make_at(KeySpace::Keys& keys, const std::string& key)
{
  auto& data = keys[key].data;
  Data* const there = std::get_if<Data>(&data);
  return there != nullptr ? *there : data.emplace<Data>();
}

// nullptr: there is no such field, or no hash. `hash`: a pointer to a Hash.
auto value_in(auto* hash, const std::string& field) -> decltype(&hash->front().second)
{
  if (hash == nullptr) {
    return nullptr;
  }
  const auto found = std::ranges::find(*hash, field, &Hash::value_type::first);
  return found == hash->end() ? nullptr : &found->second;
}

}  // namespace rlock::record
