// SPDX-License-Identifier: Apache-2.0
// Which script a call runs, and the words of the call, made from its fields (lock/calls.h).
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>
#include "base/fields.h"
#include "engine/script_host.h"
#include "lock/calls.h"
#include "lock/lock_kind.h"

namespace rlock {

// The scripts for each kind of lock: a row of scripts and names for each alternative of LockKind.

struct KindScripts {
  const Script& acquire;
  const Script& renew;
  const Script& release;
  const Script& inspect;
  const Script& force;
  const Script& raise;
  const Script& skip;
};

struct ScriptedKind {
  const KindScripts& scripts;
  std::string_view requested_mode;   // an argument of the scripts; for permits, their number replaces it
  std::string_view queue_suffix;     // in the names of the queue's keys, because each kind has its own queue
  std::string_view release_channel;  // the prefix of the channel of releases; empty: no client announces a release
};
const ScriptedKind& scripted_kind(const LockKind& kind);
inline const KindScripts& scripts_of(const LockKind& kind) { return scripted_kind(kind).scripts; }

// The argument of the scripts that tells the modes of a kind apart: "", "read", "write", or the number of permits.
std::string requested_mode(const LockKind& kind);

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
