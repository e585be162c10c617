// SPDX-License-Identifier: Apache-2.0
// As much of TOML as options need: `key = value` and `[table]`, comments; a value is a string in one line ("basic" or
// 'literal'), a number, true or false, or an array of these. What else TOML has is refused, so that nothing is read as
// something that it does not say.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

struct TomlValue {
  enum class Kind { boolean, text, array };  // a number is text, as it was written
  Kind kind;
  std::vector<std::string> texts;  // one, unless it is an array
};

struct TomlEntry {
  std::string table;  // empty: before the first
  std::string key;
  TomlValue value;
  std::size_t line;            // from 1
  std::size_t table_line = 0;  // where [table] stands
};

// ErrorCode::config, "LINE: what is wrong". A key that comes twice in a table is wrong.
Result<std::vector<TomlEntry>> parse_toml(std::string_view text);

}  // namespace rlock::cli
