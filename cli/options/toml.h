// SPDX-License-Identifier: Apache-2.0
// Parses the part of TOML that options need: `key = value`, `[table]` and comments. A value is a string in one line ("basic" or
// 'literal'), a number, true or false, or an array of these. The parser refuses the rest of TOML.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

struct TomlValue {
  enum class Kind { boolean, text, array };  // a number is text, as it stands in the file
  Kind kind;
  std::vector<std::string> texts;  // one element, unless it is an array
};

struct TomlEntry {
  std::string table;  // empty: above all tables
  std::string key;
  TomlValue value;
  std::size_t line;            // from 1
  std::size_t table_line = 0;  // of [table]
};

// The name of a setting or table as errors quote it; "..." for a name that no option or verb can have, because it may be a URL with
// a password.
std::string shown_name(std::string_view name);

// ErrorCode::config, "LINE: what is wrong", also when a table has a key twice. The text quotes no value, which may be a secret.
Result<std::vector<TomlEntry>> parse_toml(std::string_view text);

}  // namespace rlock::cli
