// SPDX-License-Identifier: Apache-2.0
// Commands on keys, strings and lists, and messages.
#include "engine/commands.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace rlock::record {
namespace {

std::int64_t time_to_live(KeySpace& keys, const std::string& key)
{
  const Entry* const entry = Commands::find(keys, key);
  if (entry == nullptr) {
    return -2;
  }
  return entry->expires ? std::max<std::int64_t>(0, *entry->expires - Commands::now_ms(keys)) : -1;
}

Reply exists(KeySpace& keys, const Words& words)
{
  return Reply::of(std::count_if(words.begin() + 1, words.end(),
                                 [&](const std::string& key) { return Commands::find(keys, key) != nullptr; }));
}

Reply del(KeySpace& keys, const Words& words)
{
  return Reply::of(std::count_if(words.begin() + 1, words.end(),
                                 [&](const std::string& key) { return Commands::remove(keys, key); }));
}

Reply type(KeySpace& keys, const Words& words)
{
  constexpr std::array names{"string", "hash", "zset", "list"};
  const Entry* const entry = Commands::find(keys, words[1]);
  return Reply::status(entry == nullptr ? "none" : names[entry->data.index()]);
}

std::int64_t end_in(const KeySpace& keys, std::int64_t ms)
{
  return std::min(latest_expiry, Commands::now_ms(keys) + std::min(latest_expiry, ms));
}

Reply pexpire(KeySpace& keys, const Words& words)
{
  const std::int64_t ms = integer_of(words.at(2));
  Entry* const entry = Commands::find(keys, words[1]);
  if (entry == nullptr) {
    return Reply::of(0);
  }
  if (ms <= 0) {
    Commands::remove(keys, words[1]);
  } else {
    entry->expires = end_in(keys, ms);
  }
  return Reply::of(1);
}

Reply pttl(KeySpace& keys, const Words& words) { return Reply::of(time_to_live(keys, words[1])); }

Reply get(KeySpace& keys, const Words& words)
{
  const auto* const text = Commands::get<std::string>(keys, words[1]);
  return text == nullptr ? Reply{} : Reply::of(*text);
}

Reply set(KeySpace& keys, const Words& words)
{
  const Entry* const before = Commands::find(keys, words[1]);
  Entry entry{words.at(2), {}};
  Reply answer = Reply::status("OK");
  for (std::size_t at = 3; at < words.size(); ++at) {
    if (words[at] == "NX") {
      if (before != nullptr) {
        return {};
      }
    } else if (words[at] == "KEEPTTL") {
      entry.expires = before != nullptr ? before->expires : std::nullopt;
    } else if (words[at] == "GET") {
      answer = get(keys, words);
    } else if (words[at] == "PX") {
      const std::int64_t ms = integer_of(words.at(++at));
      if (ms <= 0) {
        return Reply::error("ERR invalid expire time in 'set' command");
      }
      entry.expires = end_in(keys, ms);
    } else {
      throw CommandError{"ERR the record engine does not know SET … " + words[at]};
    }
  }
  Commands::set(keys, words[1], std::move(entry));
  return answer;
}

// The indexes as a range of the elements, which may be empty.
std::pair<std::size_t, std::size_t> range(const Words& words, std::size_t size)
{
  const auto count = static_cast<std::int64_t>(size);
  const auto from_end = [&](std::int64_t at) { return at < 0 ? std::max<std::int64_t>(0, at + count) : at; };
  const std::int64_t last = integer_of(words.at(3));
  const std::int64_t first = std::min(from_end(integer_of(words.at(2))), count);
  const std::int64_t end = last + count < 0 ? 0 : std::min(from_end(last) + 1, count);
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(std::max(first, end))};
}

Reply rpush(KeySpace& keys, const Words& words)
{
  List& list = Commands::make<List>(keys, words[1]);
  list.insert(list.end(), words.begin() + 2, words.end());
  return Reply::of(static_cast<std::int64_t>(list.size()));
}

Reply lrange(KeySpace& keys, const Words& words)
{
  const List* const list = Commands::get<List>(keys, words[1]);
  if (list == nullptr) {
    return Reply::array();
  }
  const auto [first, end] = range(words, list->size());
  return Reply::list(Words(list->data() + first, list->data() + end));
}

Reply ltrim(KeySpace& keys, const Words& words)
{
  if (List* const list = Commands::get<List>(keys, words[1]); list != nullptr) {
    const auto [first, end] = range(words, list->size());
    *list = Words(list->data() + first, list->data() + end);
    Commands::drop_if_empty(keys, words[1]);
  }
  return Reply::status("OK");
}

Reply lindex(KeySpace& keys, const Words& words)
{
  const List* const list = Commands::get<List>(keys, words[1]);
  const auto at = static_cast<std::size_t>(integer_of(words.at(2)));
  return list != nullptr && at < list->size() ? Reply::of((*list)[at]) : Reply{};
}

Reply time(KeySpace& keys, const Words&)
{
  return Reply::list({std::to_string(keys.time() / 1'000'000), std::to_string(keys.time() % 1'000'000)});
}

Reply publish(KeySpace& keys, const Words& words)
{
  return Reply::of(keys.on_publish ? keys.on_publish(words[1], words.at(2)) : 0);
}

Reply pubsub(KeySpace& keys, const Words& words)
{
  if (words[1] != "NUMSUB" || words.size() != 3) {
    throw CommandError{"ERR the record engine does not know PUBSUB " + words[1]};
  }
  return Reply::array({Reply::of(words[2]), Reply::of(keys.count_subscribers ? keys.count_subscribers(words[2]) : 0)});
}

}  // namespace

std::int64_t integer_of(const std::string& text)
{
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) {
    throw CommandError{"ERR value is not an integer or out of range"};
  }
  return number;
}

std::string number_text(double number)
{
  std::array<char, 40> text{};
  const bool is_whole = number == std::floor(number) && std::abs(number) < 1e17;
  std::snprintf(text.data(), text.size(), is_whole ? "%.0f" : "%.17g", number);
  return text.data();
}

const std::unordered_map<std::string, Command>& command_table()
{
  static const auto table = [] {
    std::unordered_map<std::string, Command> all{
        {"EXISTS", exists}, {"DEL", del},   {"TYPE", type},       {"PEXPIRE", pexpire}, {"PTTL", pttl},
        {"GET", get},       {"SET", set},   {"RPUSH", rpush},     {"LRANGE", lrange},   {"LTRIM", ltrim},
        {"LINDEX", lindex}, {"TIME", time}, {"PUBLISH", publish}, {"PUBSUB", pubsub},
    };
    add_hash_commands(all);
    add_set_commands(all);
    return all;
  }();
  return table;
}

}  // namespace rlock::record
