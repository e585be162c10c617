// SPDX-License-Identifier: Apache-2.0
// The commands of the key space, one function each. Private to engine.
#pragma once

#include "engine/key_space.h"

#include <string>
#include <unordered_map>

namespace rlock::record {

// A command that fails: its error reply.
struct CommandError {
  std::string text;
};

using Command = Reply (*)(KeySpace& keys, const Words& words);
const std::unordered_map<std::string, Command>& command_table();

// Access to the keys for the commands.
struct Commands {
  static std::int64_t now_ms(const KeySpace& keys) { return keys.m_micros / 1000; }
  static Entry* find(KeySpace& keys, const std::string& key) { return keys.find(key); }
  static bool remove(KeySpace& keys, const std::string& key)
  {
    return keys.find(key) != nullptr && keys.m_keys.erase(key) == 1;
  }
  static void set(KeySpace& keys, const std::string& key, Entry entry) { keys.m_keys[key] = std::move(entry); }
  static void drop_if_empty(KeySpace& keys, const std::string& key) { keys.drop_if_empty(key); }

  // nullptr: there is no such key.
  template <typename Data>
  static Data* get(KeySpace& keys, const std::string& key)
  {
    Entry* const entry = keys.find(key);
    if (entry == nullptr) {
      return nullptr;
    }
    Data* const data = std::get_if<Data>(&entry->data);
    if (data == nullptr) {
      throw CommandError{"WRONGTYPE Operation against a key holding the wrong kind of value"};
    }
    return data;
  }
  template <typename Data>
  static Data& make(KeySpace& keys, const std::string& key)
  {
    Data* const data = get<Data>(keys, key);
    return data != nullptr ? *data : std::get<Data>((keys.m_keys[key] = Entry{Data{}, {}}).data);
  }
};

std::int64_t integer_of(const std::string& text);  // throws CommandError
std::string number_text(double number);            // as Redis shows a score

void add_hash_commands(std::unordered_map<std::string, Command>& table);
void add_set_commands(std::unordered_map<std::string, Command>& table);

}  // namespace rlock::record
