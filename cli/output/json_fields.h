// SPDX-License-Identifier: Apache-2.0
// Rows that document the fields of a JSON object and print them, so that a field is added in one place.
#pragma once

#include "cli/output/json.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

using Json = nlohmann::ordered_json;  // keeps the fields in the order of the table

// One field of an object: how it is documented, and how it is made of the value that the object shows.
template <typename Value>
struct Field {
  JsonField documented;
  Json (*of)(const Value&);
};
template <typename Value, std::size_t N>
using Fields = std::array<Field<Value>, N>;

template <typename Value, std::size_t N>
void add(Json& json, const Value& value, const Fields<Value, N>& fields)
{
  for (const Field<Value>& field : fields) {
    json.emplace(field.documented.name, field.of(value));
  }
}

template <typename Value, std::size_t N>
Json object(const Value& value, const Fields<Value, N>& fields)
{
  Json json = Json::object();
  add(json, value, fields);
  return json;
}

// `element` makes the JSON of each value.
template <typename Values, typename Element>
Json array(const Values& values, const Element& element)
{
  Json all = Json::array();
  for (const auto& value : values) {
    all.push_back(element(value));
  }
  return all;
}

// An object on a line that ends with a newline. Bytes that are not UTF-8 become U+FFFD.
std::string one_line(const Json& json);

template <typename Value, std::size_t N>
std::string line_of(const Value& value, const Fields<Value, N>& fields)
{
  return one_line(object(value, fields));
}

// The documented fields of several groups of rows, one after the other.
template <typename... Rows>
std::vector<JsonField> documented(const Rows&... rows)
{
  std::vector<JsonField> fields;
  const auto append = [&](const auto& some) {
    for (const auto& field : some) {
      fields.push_back(field.documented);
    }
  };
  (append(rows), ...);
  return fields;
}

// null where the value is empty or 0.
inline Json or_null(std::string_view text) { return text.empty() ? Json() : Json(text); }
inline Json or_null(std::int64_t number) { return number == 0 ? Json() : Json(number); }
inline Json or_null(std::optional<Millis> time) { return time ? Json(time->count()) : Json(); }

// What is documented of locks and their runs, and of reports, in the order in which rlock-json(5) has it.
std::vector<JsonObject> lock_objects();
std::vector<JsonObject> report_objects();

}  // namespace rlock::cli
