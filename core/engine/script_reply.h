// SPDX-License-Identifier: Apache-2.0
// The answers of lock/calls.h in the replies of scripts, to read and to write: a flat array, whose first element is the word of the
// answer. A missing element reads as empty or 0.
#pragma once

#include "base/fields.h"
#include "base/reply.h"
#include "engine/script_host.h"
#include "lock/calls.h"
#include "lock/requests.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace rlock {

// What a key holds, as words of a sentence: "a lock", "permits", "a zset". `word`: the word of the scripts.
std::string content_of_key(const std::string& word);

// A time from a server, limited to about a century, so that sums of times do not overflow.
constexpr std::int64_t plausible_ms(std::int64_t ms)
{
  constexpr std::int64_t most = std::int64_t{1} << 42;
  return std::clamp(ms, -most, most);
}

// The latest plausible time of a server, in 2112: differences of later times could overflow.
inline constexpr ServerTime latest_time{std::int64_t{1} << 52};

template <typename Field>
void read_field(const Reply& element, Field& field);

// The fields of `value`, from the element `at` on.
template <HasFields Value>
void read_fields(const std::vector<Reply>& elements, std::size_t at, Value& value)
{
  const auto read = [&](auto& field) {
    read_field(at < elements.size() ? elements[at] : Reply{}, field);
    ++at;
  };
  std::apply([&](auto&... fields) { (read(fields), ...); }, fields_of(value));
}

template <typename Field>
void read_field(const Reply& element, Field& field)
{
  if constexpr (std::is_same_v<Field, std::string>) {
    field = element.text;
  } else if constexpr (std::is_same_v<Field, bool>) {
    field = element.integer == 1;
  } else if constexpr (std::is_same_v<Field, std::int64_t>) {
    field = element.integer;
  } else if constexpr (std::is_same_v<Field, std::uint64_t>) {  // sent as text, because Lua's numbers are doubles
    std::from_chars(element.text.data(), element.text.data() + element.text.size(), field);
  } else if constexpr (std::is_same_v<Field, Millis>) {
    field = Millis{plausible_ms(element.integer)};
  } else if constexpr (std::is_same_v<Field, std::optional<Millis>>) {  // as PTTL replies
    if (element.kind == Reply::Kind::integer && element.integer >= 0) {
      read_field(element, field.emplace());
    }
  } else if constexpr (requires { field.has_value(); }) {
    if (element.kind == Reply::Kind::text) {
      read_field(element, field.emplace());
    }
  } else if constexpr (HasFields<typename Field::value_type>) {  // rows follow each other in one list
    constexpr std::size_t size = Field::value_type::size;
    for (std::size_t at = 0; at + size <= element.elements.size(); at += size) {
      read_fields(element.elements, at, field.emplace_back());
    }
  } else {
    for (const Reply& each : element.elements) {
      read_field(each, field.emplace_back());
    }
  }
}

template <typename Answer>
bool is_answer(const Reply& reply)
{
  return !reply.elements.empty() && reply.elements.front().text == Answer::word;
}

// nullopt: the reply is another answer.
template <typename Answer>
std::optional<Answer> answer_in(const Reply& reply)
{
  if (!is_answer<Answer>(reply)) {
    return std::nullopt;
  }
  Answer answer;
  read_fields(reply.elements, 1, answer);
  return answer;
}

// The elements of `field`, behind those that are there.
template <typename Field>
void add_field(std::vector<Reply>& elements, const Field& field)
{
  if constexpr (HasFields<Field>) {
    std::apply([&](const auto&... fields) { (add_field(elements, fields), ...); }, fields_of(field));
  } else if constexpr (std::is_same_v<Field, std::string>) {
    elements.push_back(Reply::of(field));
  } else if constexpr (std::is_same_v<Field, std::uint64_t>) {
    elements.push_back(Reply::of(std::to_string(field)));
  } else if constexpr (std::is_integral_v<Field>) {
    elements.push_back(Reply::of(std::int64_t{field}));
  } else if constexpr (std::is_same_v<Field, Millis>) {
    elements.push_back(Reply::of(field.count()));
  } else if constexpr (!requires { field.has_value(); }) {
    std::vector<Reply>& rows = elements.emplace_back(Reply::array()).elements;
    for (const auto& each : field) {
      add_field(rows, each);
    }
  } else if (field) {
    add_field(elements, *field);
  } else {
    elements.emplace_back();
  }
}

template <typename Answer>
Reply reply_with(const Answer& answer)
{
  Reply reply = Reply::list({std::string(Answer::word)});
  add_field(reply.elements, answer);
  return reply;
}

// nullopt: the server does not know, or knows what this client does not.
inline std::optional<HolderInfo> info_of(const std::optional<std::string>& text)
{
  return text ? decode_holder(*text) : std::nullopt;
}

// The holder that an answer names.
template <typename Answer>
Holder holder_of(const Answer& answer)
{
  return {.owner = Owner::of(answer.owner), .count = answer.count, .info = info_of(answer.info)};
}

// The error of a reply that the caller does not know.
Error unexpected(const VerbRequest& request, const Reply& reply);

}  // namespace rlock
