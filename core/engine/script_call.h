// SPDX-License-Identifier: Apache-2.0
// Makes the words of a call from its fields (lock/calls.h).
#pragma once

#include <string>
#include <type_traits>
#include <vector>
#include "base/fields.h"
#include "engine/script_host.h"
#include "lock/calls.h"

namespace rlock {

const Script& script_of(const VerbRequest& request);

// A missing value is an empty word, and a missing tail none.
template <typename Field>
void add_words(std::vector<std::string>& words, const Field& field)
{
  if constexpr (HasFields<Field>) {
    if constexpr (requires { Field::word; }) {
      words.emplace_back(Field::word);
    }
    std::apply([&](const auto&... fields) { (add_words(words, fields), ...); }, fields_of(field));
  } else if constexpr (std::is_same_v<Field, std::string>) {
    words.push_back(field);
  } else if constexpr (std::is_same_v<Field, Millis>) {
    words.push_back(std::to_string(field.count()));
  } else if constexpr (std::is_integral_v<Field>) {
    words.push_back(std::to_string(field));
  } else if constexpr (std::is_enum_v<Field>) {
    words.emplace_back(name_of(field));
  } else if constexpr (std::is_same_v<Field, std::vector<std::string>>) {
    words.insert(words.end(), field.begin(), field.end());
  } else if (field) {
    add_words(words, *field);
  } else if constexpr (!requires { Field::is_tail; }) {
    words.emplace_back();
  }
}

template <HasFields Call>
std::vector<std::string> words_of(const Call& value)
{
  std::vector<std::string> words;
  add_words(words, value);
  return words;
}

}  // namespace rlock
