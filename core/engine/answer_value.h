// SPDX-License-Identifier: Apache-2.0
// Writes an answer of lock/calls.h as a script would. Private to engine.
#pragma once

#include <string>
#include <tuple>
#include <type_traits>
#include <vector>
#include "base/fields.h"
#include "engine/key_space.h"
#include "lock/calls.h"

namespace rlock::record {

template <typename Field>
void add_value(Reply& list, const Field& field)
{
  std::vector<Reply>& parts = list.elements;
  if constexpr (HasFields<Field>) {
    std::apply([&](const auto&... fields) { (add_value(list, fields), ...); }, fields_of(field));
  } else if constexpr (std::is_same_v<Field, std::string>) {
    parts.push_back(Reply::of(field));
  } else if constexpr (std::is_same_v<Field, std::uint64_t>) {
    parts.push_back(Reply::of(std::to_string(field)));
  } else if constexpr (std::is_integral_v<Field>) {
    parts.push_back(Reply::of(std::int64_t{field}));
  } else if constexpr (std::is_same_v<Field, Millis>) {
    parts.push_back(Reply::of(field.count()));
  } else if constexpr (!requires { field.has_value(); }) {
    parts.push_back(Reply::array());
    for (const auto& each : field) {
      add_value(parts.back(), each);
    }
  } else if (field) {
    add_value(list, *field);
  } else {
    parts.emplace_back();
  }
}

template <typename Answer>
Reply reply_with(const Answer& answer)
{
  Reply reply = Reply::array({Reply::of(std::string(Answer::word))});
  add_value(reply, answer);
  return reply;
}

}  // namespace rlock::record
