// SPDX-License-Identifier: Apache-2.0
// The JSON objects that rlock prints, as a table: `rlock help json` and rlock-json(5) are made of it. json_locks.cpp and
// json_reports.cpp print the objects by the same rows, so a field is added in one place.
#pragma once

#include <string_view>
#include <vector>

namespace rlock::cli {

// `type`: "string", "integer", "boolean", "time" (a string, UTC in ISO 8601), or the name of another object; "array of" and
// "or null" with these.
struct JsonField {
  std::string_view name;
  std::string_view type;
  std::string_view meaning;
};

struct JsonObject {
  std::string_view name;
  std::string_view summary;                  // what one object stands for
  std::vector<std::string_view> printed_by;  // verbs; empty: the object is only part of others
  std::vector<JsonField> fields;             // in the order in which they are printed
};

const std::vector<JsonObject>& json_objects();

}  // namespace rlock::cli
