// SPDX-License-Identifier: Apache-2.0
// Rows of the table of JSON fields, and the functions that print objects by them. Only for json_locks.cpp and json_reports.cpp.
#pragma once

#include "base/clock.h"
#include "cli/output/json_fields.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

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

std::string one_line(const Json& json);

template <typename Value, std::size_t N>
std::string line_of(const Value& value, const Fields<Value, N>& fields)
{
  return one_line(object(value, fields));
}

Json or_null(std::string_view text);  // empty: null
Json or_null(std::int64_t number);    // 0: null
Json or_null(std::optional<Millis> time);

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

std::vector<JsonObject> lock_objects();
std::vector<JsonObject> report_objects();

}  // namespace rlock::cli
